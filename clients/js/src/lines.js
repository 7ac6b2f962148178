/** Gives the objects of a stream of bytes that has one a line, as many as come together; none is only a sign of life. */
export async function* lines(body) {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let unread = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      // What is unread has no end of a line in it: only what is new is looked through, or a long row would take its square.
      const whole = decoder.decode(value, { stream: true }).split('\n');
      whole[0] = unread + whole[0];
      unread = whole.pop();
      yield whole.filter((line) => line !== '').map((line) => JSON.parse(line));
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
