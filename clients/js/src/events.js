// Server-Sent Events from a stream of bytes (WHATWG HTML, 9.2.6), as much of it as a Seqtide server sends.

/** Gives what each whole event says: `{data}`, or `{retry}` in milliseconds; `{}` for what is only a sign of life. */
export async function* events(body) {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let unread = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      unread += decoder.decode(value, { stream: true });
      const whole = unread.split('\n\n');
      unread = whole.pop();
      // Bytes of an event that is not whole yet are a sign of life, too.
      if (whole.length === 0) yield {};
      for (const event of whole) yield fields(event);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function fields(event) {
  const said = {};
  for (const line of event.split('\n')) {
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (field === 'data') said.data = said.data === undefined ? value : `${said.data}\n${value}`;
    if (field === 'retry' && /^\d+$/.test(value)) said.retry = Number(value);
  }
  return said;
}
