/** libsignal prints whole sessions, keys and all. Whoever plays a phone in a test's process keeps it quiet with this: the library takes no logger. */
const LIBSIGNAL =
  /^(Closing (open )?session|Opening session|Removing old closed session|Session (error|already)|Failed to decrypt message with any known session|Decrypted message with closed session)/;

/** Until it is undone; everything else is printed as before. */
export function hushLibsignal(): () => void {
  const own = console;
  let over = false;
  const undo = (['info', 'warn', 'error'] as const).map((level) => {
    const print = own[level];
    const hushed = (...words: unknown[]) => {
      if (over || !LIBSIGNAL.test(String(words[0]))) print.apply(own, words);
    };
    own[level] = hushed;
    return () => {
      // Somebody may stand before us; then everything goes through.
      if (own[level] === hushed) own[level] = print;
    };
  });
  return () => {
    over = true;
    for (const one of undo) one();
  };
}
