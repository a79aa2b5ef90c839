/** What may not be seen in a log, cut out of any text: the secrets we know, and what looks like one. */

const CUT = '[redacted]';

/** Bot tokens of Telegram (also in a URL), keys of model servers, and whatever authorises a request. */
const LOOKS_SECRET: [RegExp, string][] = [
  [/\d{6,}(?::|%3A)[A-Za-z0-9_-]{30,}/gi, CUT],
  [/\bsk-[A-Za-z0-9_-]{8,}/g, CUT],
  [/\b(Bearer\s+)[^\s"'\\,;]{6,}/gi, `$1${CUT}`],
];

/** Shorter ones would cut up ordinary words. */
const SHORTEST = 4;

export function redact(text: string, secrets: readonly string[]): string {
  return createRedactor(secrets)(text);
}

/** The same for many texts: the forms of the secrets are worked out once. */
export function createRedactor(secrets: readonly string[]): (text: string) => string {
  const known = [...new Set(secrets.filter((secret) => secret.length >= SHORTEST).flatMap(formsOf))];
  // A secret that contains another goes first, so that no half of it stays.
  known.sort((a, b) => b.length - a.length);
  return (text) => {
    let safe = text;
    for (const secret of known) safe = safe.replaceAll(secret, CUT);
    for (const [pattern, replacement] of LOOKS_SECRET) safe = safe.replace(pattern, replacement);
    return safe;
  };
}

/** As it is, inside JSON, and inside a URL. */
function formsOf(secret: string): string[] {
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
}
