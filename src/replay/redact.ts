/** What `coterie replay` shows is without what the journal leaves out: secrets, and arguments that must not stand there. Pure. */

export interface Redacting {
  /** Takes the secrets out of a text. */
  clean(text: string): string;
  /** What the journal shows of a call's arguments, as a model wrote them; `name`: '' where only the arguments are told. */
  argumentsOf(name: string, given: string): string;
}

/** The same value, each text in it cleaned; of calls (what has `arguments`) the arguments first. */
export function redacted<Value>(value: Value, by: Redacting): Value {
  return cleaned(value, by) as Value;
}

function cleaned(value: unknown, by: Redacting): unknown {
  if (typeof value === 'string') return by.clean(value);
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return value;
  if (Array.isArray(value)) return value.map((each) => cleaned(each, by));
  const { name } = value as { name?: unknown };
  const entries = Object.entries(value).map(([key, inner]) => {
    const isArguments = key === 'arguments' && typeof inner === 'string';
    const shown = isArguments ? by.argumentsOf(typeof name === 'string' ? name : '', inner) : inner;
    return [by.clean(key), cleaned(shown, by)];
  });
  return Object.fromEntries(entries);
}
