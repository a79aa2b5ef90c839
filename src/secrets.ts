import { CHANNELS } from './channels/list.js';
import { type Config, camel } from './config.js';
import { isSecretName, secretsIn } from './models/redact.js';

/** Whether a key of config.yaml is a secret: an option, or what stands below it or in headers and fields. */
export function isSecretOption(name: string, [...above]: string[]): boolean {
  const option = Object.keys(camel({ [name]: null }))[0] ?? '';
  const isNamedFreely = above.some((each) => ['headers', 'extra', 'env'].includes(each));
  return SECRETS.has(option) || (isNamedFreely && isSecretName(name));
}

/**
 * Everything that may be seen by nobody: the secret options, headers, fields and variables, passwords in addresses, and what
 * was taken from files.
 */
export function secretsOf(config: Config): string[] {
  const secretVariables = config.variables.filter(({ name }) => isSecretName(name));
  const found = [...config.secretFiles.map(({ text }) => text), ...secretVariables.map(({ value }) => value)];
  collect(config, false);
  for (const proxy of [config.network.proxies.plain, config.network.proxies.secure]) {
    // A login of one word is a key.
    if (proxy?.password === '') found.push(proxy.user, new URL(proxy.address).username);
  }
  return found.filter((each) => each !== '');

  function collect(value: unknown, isSecret: boolean): void {
    if (typeof value === 'string') found.push(...(isSecret ? [value] : secretsInAddress(value)));
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      const isNamed = key === 'headers' || (key === 'env' && !Array.isArray(inner));
      if (isNamed) found.push(...secretNamed(inner));
      else collect(inner, isSecret || SECRETS.has(key));
      if (key === 'extra') found.push(...secretsIn(inner));
    }
  }
}

/** What no line of a log holds: the secrets, and whatever was taken from the environment, as nobody knows what it is. */
export function hiddenInLogs(config: Config): string[] {
  const values = config.variables.flatMap(({ value }) => [value, ...asAddress(value)]);
  return [...secretsOf(config), ...values.filter(({ length }) => length >= SHORTEST_HIDDEN)];
}

/** Shorter ones (`info`, `8420`) are words of their own, and would be cut out of others. */
export const SHORTEST_HIDDEN = 6;

/** As addresses are shown: names of hosts in small letters, nothing behind the path. */
export function asAddress(value: string): string[] {
  return URL.canParse(value) ? [new URL(value).href.replace(/\/$/, '')] : [];
}

/** Of headers and variables. */
export function secretNamed(values: Record<string, string>): string[] {
  return Object.entries(values).flatMap(([name, value]) =>
    // The key alone, too, without the word before it that says what it is.
    isSecretName(name) ? [value, value.replace(/^\w+ /, '')] : [],
  );
}

/** Of `https://user:password@host?token=key`, as they are written there and decoded. */
export function secretsInAddress(text: string): string[] {
  if (!URL.canParse(text)) return [];
  const { password, searchParams } = new URL(text);
  const keys = [...searchParams].filter(([name]) => isSecretName(name)).map(([, value]) => value);
  if (password === '') return keys;
  try {
    return [...keys, password, decodeURIComponent(password)];
  } catch {
    // It holds a lone %, so it is not encoded.
    return [...keys, password];
  }
}

/** Options that are secrets wherever they are, and those that the channels name. */
export const SECRETS = new Set<string>([
  'apiKey',
  'token',
  'clientSecret',
  ...CHANNELS.flatMap(({ secrets }) => secrets),
]);
