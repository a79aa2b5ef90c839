/**
 * Redaction of secrets: known ones, and anything that looks like one. Overlapping matches are cut as one, so that no
 * half of a secret stays. No pattern backtracks over more than a few characters.
 */
const CUT = '[redacted]';

/**
 * How a secret begins, and the characters that follow: Telegram bot tokens, keys of model servers, authorisation
 * headers. The first group is kept. No pattern is endless: one that matches megabytes overflows V8's stack.
 */
const LOOKS_SECRET: readonly { begins: RegExp; goesOn: RegExp }[] = [
  { begins: /()\d{6,12}(?::|%3A)[A-Za-z0-9_-]{30}/gi, goesOn: /[A-Za-z0-9_-]/ },
  { begins: /()\bsk-[A-Za-z0-9_-]{8}/g, goesOn: /[A-Za-z0-9_-]/ },
  { begins: /(\bBearer\s{1,8})[^\s"'\\,;]{6}/gi, goesOn: /[^\s"'\\,;]/ },
  {
    begins: /(\bauthorization\W{1,8}(?:Basic|Bot|Token)\s{1,8})[^\s"'\\,;]{6}/gi,
    goesOn: /[^\s"'\\,;]/,
  },
];

/** Shorter secrets would match inside ordinary words. */
const SHORTEST = 4;
const SHORTEST_IN_BASE64 = 8;

interface SecretSpan {
  from: number;
  to: number;
}

/** Reusable: the forms of each secret are computed once. */
export function createRedactor(secrets: readonly string[]): (text: string) => string {
  const known = [...new Set(secrets.filter(({ length }) => length >= SHORTEST).flatMap(formsOf))];
  return (text) =>
    without(text, [
      ...known.flatMap((secret) => placesOf(text, secret)),
      ...LOOKS_SECRET.flatMap((form) => placesThatLook(form, text)),
    ]);
}

/** A redactor that learns further secrets while it is used, and forgets none. */
export function createLearner(secrets: readonly string[]) {
  let known = secrets;
  let clean = createRedactor(known);
  return {
    redact: (text: string): string => clean(text),
    learn(more: readonly string[]): void {
      known = [...new Set([...known, ...more])];
      clean = createRedactor(known);
    },
  };
}

/** A secret's forms: as it is, in JSON (also nested), in a URL, and in base64, as in basic authentication. */
function formsOf(secret: string): string[] {
  const inJson = JSON.stringify(secret).slice(1, -1);
  const whole = Buffer.from(secret).toString();
  const inUrls = [
    encodeURIComponent(whole),
    encodeURI(whole),
    new URLSearchParams([['', whole]]).toString().slice(1),
  ];
  const small = inUrls.map((each) => each.replace(/%[\dA-F]{2}/g, (sign) => sign.toLowerCase()));
  return [secret, inJson, JSON.stringify(inJson).slice(1, -1), ...inUrls, ...small, ...inBase64(secret)];
}

/** At each of the three alignments, without the first and last characters that also encode neighbouring bytes. */
function inBase64(secret: string): string[] {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)]);
    const whole = bytes.toString('base64').replace(/(?<!=)=+$/, '');
    const own = whole.slice(before === 0 ? 0 : before + 1, bytes.length % 3 === 0 ? undefined : -1);
    return own.length < SHORTEST_IN_BASE64 ? [] : [own, own.replaceAll('+', '-').replaceAll('/', '_')];
  });
}

function placesOf(text: string, secret: string): SecretSpan[] {
  const places: SecretSpan[] = [];
  for (let from = text.indexOf(secret); from >= 0; from = text.indexOf(secret, from + 1)) {
    const last = places.at(-1);
    if (last !== undefined && from <= last.to) last.to = from + secret.length;
    else places.push({ from, to: from + secret.length });
  }
  return places;
}

function placesThatLook({ begins, goesOn }: (typeof LOOKS_SECRET)[number], text: string): SecretSpan[] {
  const places: SecretSpan[] = [];
  begins.lastIndex = 0;
  for (let match = begins.exec(text); match !== null; match = begins.exec(text)) {
    const [whole, stays = ''] = match;
    let to = match.index + whole.length;
    while (to < text.length && goesOn.test(text.charAt(to))) to++;
    places.push({ from: match.index + stays.length, to });
    begins.lastIndex = to;
  }
  return places;
}

/** A number that may be a whole JSON value is replaced by a number. */
function inPlaceOf(text: string, from: number, to: number): string {
  const mayBeValue = /[:,[]/.test(text.charAt(from - 1)) && /[,}\]]/.test(text.charAt(to));
  return mayBeValue && /^\d+$/.test(text.slice(from, to)) ? '0' : CUT;
}

function without(text: string, found: SecretSpan[]): string {
  if (found.length === 0) return text;
  const kept: string[] = [];
  let end = 0;
  for (const { from, to } of found.sort((a, b) => a.from - b.from)) {
    if (from >= end) kept.push(text.slice(end, from), inPlaceOf(text, from, to));
    end = Math.max(end, to);
  }
  return [...kept, text.slice(end)].join('');
}
