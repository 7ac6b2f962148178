// A question about what changes all the time, asked by whoever hears that it did.

/**
 * Has a question asked one at a time. Who asks while it is under way has it asked once more behind that, together with all who
 * come meanwhile: answers come in the order in which they were asked for, and however often it is asked, two questions are the
 * most there are. Resolves when an answer has come that was asked for from here on.
 */
export function latest(ask) {
  let [underWay, behind] = [null, null];
  const begin = () => {
    behind = null;
    underWay = ask().finally(() => (underWay = null));
    return underWay;
  };
  return () => {
    if (underWay === null && behind === null) return begin();
    behind ??= underWay.then(begin, begin);
    return behind;
  };
}
