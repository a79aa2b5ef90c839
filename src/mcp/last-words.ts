/** What a process wrote to standard error before it ended: the line that says why. Pure. */

/** Of the end of what it wrote, so much is looked at. */
export const MOST_LINES = 200;

/** Frames of a stack, code that is quoted, what a runtime says of itself, and fields of an error that is printed. */
const BESIDE =
  /^(?:\s|$|node:|Node\.js v|file:\/\/|\/\S*:\d+$|[\]})>^~|+-]|Traceback |The above exception|During handling|note: run with|stack backtrace|goroutine |exit status|npm (?:notice|warn|WARN)|npm (?:error|ERR!)\s*(?:code|path|command|signal|errno|syscall|A complete log|$))/;
/** How runtimes begin the line with which they end. */
const NAMES_AN_ERROR =
  /^(?:Uncaught )?(?:[A-Za-z_$][\w$.]{0,80})?(?:Error|Exception|Exit|Interrupt)(?: \[\w{1,60}\])?(?::|$)|^panic: |^thread '[^']{0,80}' panicked|^npm (?:error|ERR!) |^fatal\b/i;
const SOUNDS_LIKE_ONE =
  /\b(?:error|fail(?:ed|ure)?|cannot|can't|could not|not found|no such|denied|refused|missing|required|invalid|unknown|unable|must)\b/i;

/**
 * null where it wrote nothing. A runtime's own line goes before a line that sounds like a reason, and that before any other;
 * of several the last counts, but the first of npm, which explains it afterwards.
 */
export function reasonIn(lines: readonly string[]): string | null {
  const written = lines.filter((line) => line.trim() !== '');
  const candidates = written.filter((line) => !BESIDE.test(line));
  const errors = candidates.filter((line) => NAMES_AN_ERROR.test(line));
  const first = errors.find((line) => line.startsWith('npm '));
  const found =
    first ?? errors.at(-1) ?? candidates.findLast((line) => SOUNDS_LIKE_ONE.test(line)) ?? candidates.at(-1);
  const line = found ?? written.at(-1);
  if (line === undefined) return null;
  const next = written[written.indexOf(line) + 1]?.trim();
  // What is wrong follows: `panicked at src/main.rs:3:5:`, `ZodError: [`.
  return /[:[{(]$/.test(line.trim()) && next ? `${line.trim()} ${next}` : line.trim();
}
