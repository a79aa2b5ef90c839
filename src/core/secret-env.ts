/**
 * Values of `inputs.env` that look like secrets: they reach the commands of an agent, and neither what these
 * print, nor a model's request, nor the journal, nor what a person is told. Pure.
 */

const NAMED_SO =
  /key|token|secret|passw|passphrase|passcode|pwd|credential|auth|cookie|session|private|signature|webhook|dsn|(?:^|_)(?:pass|pin|pat|otp)(?:_|$)/i;
const LOGIN_IN_ADDRESS = /:\/\/[^\s/@:]*:[^\s/@]+@/;
/** Letters and digits in a run: a word has no digits, a number no letters, and a date or a version is shorter. */
const RUN = /[A-Za-z0-9+=_-]{16,}/g;

const PATH = /^~?(?:\/[\w.@ -]+){2,}\/?$/;

/** Shorter ones would be found in every other word. */
const LEAST_CHARS = 8;

export const REDACTED = '[redacted]';

export function looksSecret(name: string, value: string): boolean {
  if (NAMED_SO.test(name) || LOGIN_IN_ADDRESS.test(value) || value.includes('PRIVATE KEY')) return true;
  // Folders have names of all kinds (`/tmp/build-EoL35q`), and what a command prints is full of them.
  if (PATH.test(value)) return false;
  return (value.match(RUN) ?? []).some((run) => /\d/.test(run) && /[A-Za-z]/.test(run) && !isDated(run));
}

/** `2026-02-10_evolver_workspace`: words and dates, joined. */
function isDated(run: string): boolean {
  return run.split(/[-_]/).every((part) => /^(?:\d{1,8}|[A-Za-z]+)$/.test(part));
}

/** A text without the secret values of this environment. */
export function redactor(env: Readonly<Record<string, string>>): (text: string) => string {
  const secrets = Object.entries(env)
    .filter(([name, value]) => value.length >= LEAST_CHARS && looksSecret(name, value))
    .map(([, value]) => value)
    .sort((a, b) => b.length - a.length);
  return (text) => secrets.reduce((clean, secret) => clean.replaceAll(secret, REDACTED), text);
}
