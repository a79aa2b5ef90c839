/** Keeps secrets out of what an operator reads about a model server. */

/** Of headers and fields whose value lets somebody in; others (`X-Title`) are no secret, and their words may stand anywhere. */
export function isSecretName(name: string): boolean {
  return /auth|key|token|secret|cookie|password|credential/i.test(name);
}

/**
 * Replaces the key, the values of secret headers and of secret fields of the body, and what the address holds in its
 * password and query, wherever they stand.
 */
export function createRedactor(server: {
  baseUrl: string;
  apiKey: string | null;
  headers?: Record<string, string> | undefined;
  extra?: Record<string, unknown> | undefined;
}): (text: string) => string {
  const secrets = [server.apiKey ?? '', ...secretsIn(server.extra ?? {})];
  for (const [name, value] of Object.entries(server.headers ?? {})) {
    if (isSecretName(name)) secrets.push(value, value.replace(/^\w+ /, ''));
  }
  if (URL.canParse(server.baseUrl)) {
    const { password, searchParams } = new URL(server.baseUrl);
    secrets.push(password, decodeURIComponent(password), ...searchParams.values());
  }
  const patterns = secrets.filter((secret) => secret !== '').map(patternOf);
  return (text) => patterns.reduce((left, pattern) => left.replace(pattern, '[key]'), text);
}

/** Shorter values, under names like `tokenizer`, are none. */
const SHORTEST_IN_BODY = 8;

/** Of the further fields of a body, at any depth. */
export function secretsIn(fields: object): string[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    if (typeof value === 'object' && value !== null) return secretsIn(value);
    const isOne = typeof value === 'string' && value.length >= SHORTEST_IN_BODY && isSecretName(name);
    return isOne ? [value] : [];
  });
}

/** A short one only where it stands alone, so that a key like "none" leaves other words whole. */
function patternOf(secret: string): RegExp {
  const literal = secret.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(secret.length >= 8 ? literal : `(?<![A-Za-z0-9])${literal}(?![A-Za-z0-9])`, 'g');
}

/** Without user, password and query, which may be secrets. */
export function shownUrl(url: string): string {
  if (!URL.canParse(url)) return 'an address that is no URL';
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname.replace(/\/+$/, '')}`;
}
