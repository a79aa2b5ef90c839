/** Redacts secrets from what an operator reads about a model server. */
import { decoded } from '../core/network.js';
import type { Endpoint } from './server-ways.js';

/** Names of headers and fields that hold credentials. Values of others (`X-Title`) are not secret, and may be ordinary words. */
export function isSecretName(name: string): boolean {
  return /auth|key|token|secret|cookie|password|credential/i.test(name);
}

/** Replaces, anywhere in a text, the key, secret headers, secret fields of the body, and the password and query of the address. */
export function redactorFor(server: Endpoint): (text: string) => string {
  const secrets = [server.apiKey ?? '', ...secretsIn(server.extra ?? {})];
  for (const [name, value] of Object.entries(server.headers ?? {})) {
    if (isSecretName(name)) secrets.push(value, value.replace(/^\w+ /, ''));
  }
  if (URL.canParse(server.baseUrl)) {
    const { password, searchParams } = new URL(server.baseUrl);
    secrets.push(password, decoded(password), ...searchParams.values());
  }
  // Longer secrets first, in case one contains another.
  const known = [...new Set(secrets.filter(({ length }) => length >= SHORTEST))];
  const patterns = known.sort((a, b) => b.length - a.length).map(patternOf);
  if (patterns.length === 0) return (text) => text;
  const any = new RegExp(patterns.join('|'), 'g');
  return (text) => text.replace(any, '[key]');
}

/** Shorter values (such as a version in the address) would match ordinary words. */
const SHORTEST = 4;

/** Shorter values, under names like `tokenizer`, are not secrets. */
const SHORTEST_IN_BODY = 8;

/** Secrets in the further fields of a body, at any depth. */
export function secretsIn(fields: object): string[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    if (typeof value === 'object' && value !== null) return secretsIn(value);
    const isOne = typeof value === 'string' && value.length >= SHORTEST_IN_BODY && isSecretName(name);
    return isOne ? [value] : [];
  });
}

/** A short secret matches only whole words, so that a key like "none" leaves other words intact. */
function patternOf(secret: string): string {
  const literal = secret.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return secret.length >= 8 ? literal : `(?<![A-Za-z0-9])${literal}(?![A-Za-z0-9])`;
}

/** Without user, password and query, which may be secret. */
export function shownUrl(url: string): string {
  if (!URL.canParse(url)) return 'an address that is no URL';
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname.replace(/(?<!\/)\/+$/, '')}`;
}
