/** Keeps secrets out of what an operator reads about a model server. */

/** Headers whose value lets somebody in; others (`X-Title`) are no secret, and their words may stand anywhere. */
export function isSecretHeader(name: string): boolean {
  return /auth|key|token|secret|cookie|password|credential/i.test(name);
}

/**
 * Replaces the key, the values of secret headers, and what the address holds in its password and query, wherever they
 * stand.
 */
export function createRedactor(server: {
  baseUrl: string;
  apiKey: string | null;
  headers?: Record<string, string> | undefined;
}): (text: string) => string {
  const secrets = [server.apiKey ?? ''];
  for (const [name, value] of Object.entries(server.headers ?? {})) {
    if (isSecretHeader(name)) secrets.push(value, value.replace(/^\w+ /, ''));
  }
  if (URL.canParse(server.baseUrl)) {
    const { password, searchParams } = new URL(server.baseUrl);
    secrets.push(password, decodeURIComponent(password), ...searchParams.values());
  }
  const patterns = secrets.filter((secret) => secret !== '').map(patternOf);
  return (text) => patterns.reduce((left, pattern) => left.replace(pattern, '[key]'), text);
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
