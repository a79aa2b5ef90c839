import { CHANNELS } from './channels/list.js';
import { type Config, camel } from './config.js';
import { decoded } from './core/network.js';
import { isSecretName, secretsIn } from './models/redact.js';

/** Whether a key of config.yaml is a secret: an option, or a free name in headers, fields or variables. */
export function isSecretOption(name: string, [...above]: string[]): boolean {
  const option = Object.keys(camel({ [name]: null }))[0] ?? '';
  const isNamedFreely = above.some((each) => ['headers', 'extra', 'env'].includes(each));
  return SECRETS.has(option) || (isNamedFreely && isSecretName(name));
}

/** All secrets: secret options, headers, fields and variables, passwords in addresses, and texts taken from files. */
export function secretsOf(config: Config): string[] {
  const secretVariables = config.variables.filter(({ name }) => isSecretName(name));
  const found = [...config.secretFiles.map(({ text }) => text), ...secretVariables.map(({ value }) => value)];
  collect(config, false);
  for (const proxy of [config.network.proxies.plain, config.network.proxies.secure]) {
    // A user name without a password is a key.
    if (proxy?.password === '') found.push(proxy.user, new URL(proxy.address).username);
  }
  return found.filter((each) => each !== '');

  function collect(value: unknown, isSecret: boolean): void {
    if (typeof value === 'string') found.push(...(isSecret ? [value] : secretsInAddress(value)));
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (inner === undefined) continue;
      const isNamed = key === 'headers' || (key === 'env' && !Array.isArray(inner));
      if (isNamed) found.push(...secretNamed(inner));
      else collect(inner, isSecret || SECRETS.has(key));
      if (key === 'extra') found.push(...secretsIn(inner));
    }
  }
}

/** Everything redacted from logs: secrets, and all values from the environment, as any of them may be secret. */
export function hiddenInLogs(config: Config): string[] {
  const values = config.variables.flatMap(({ value }) => [value, ...asAddress(value)]);
  return [...secretsOf(config), ...values.filter(({ length }) => length >= SHORTEST_HIDDEN)];
}

/** Shorter values (`info`, `8420`) are ordinary words and would be cut out of other text. */
const SHORTEST_HIDDEN = 6;

/** In the form in which errors show addresses: lower-case host, no trailing slash. */
function asAddress(value: string): string[] {
  return URL.canParse(value) ? [new URL(value).href.replace(/\/$/, '')] : [];
}

/** The secret values of headers or variables. */
function secretNamed(values: Record<string, string>): string[] {
  return Object.entries(values).flatMap(([name, value]) =>
    // Also the key without its scheme (`Bearer`).
    isSecretName(name) ? [value, value.replace(/^\w+ /, '')] : [],
  );
}

/** The secrets of `https://user:password@host?token=key`, both as written and decoded. */
function secretsInAddress(text: string): string[] {
  if (!URL.canParse(text)) return [];
  const { password, searchParams } = new URL(text);
  const keys = [...searchParams].filter(([name]) => isSecretName(name)).map(([, value]) => value);
  return password === '' ? keys : [...keys, password, decoded(password)];
}

/** Options that are always secret, and those that channels declare. */
export const SECRETS = new Set<string>([
  'apiKey',
  'token',
  'clientSecret',
  ...CHANNELS.flatMap(({ secrets }) => secrets),
]);
