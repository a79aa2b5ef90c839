/** libsignal prints whole sessions, keys and all. Whoever plays a phone in a test's process keeps it quiet with this. */
const LIBSIGNAL =
  /^(Closing (open )?session|Opening session|Removing old closed session|Session (error|already)|Failed to decrypt message with any known session|Decrypted message with closed session)/;

/** Until it is undone; everything else is printed as before. */
export function hushLibsignal(): () => void {
  let over = false;
  for (const level of ['info', 'warn', 'error'] as const) {
    // biome-ignore lint/suspicious/noConsole: the library prints there, past every logger
    const print = console[level].bind(console);
    console[level] = (...words: unknown[]) => {
      if (over || !LIBSIGNAL.test(String(words[0]))) print(...words);
    };
  }
  return () => {
    over = true;
  };
}
