/** What the options of channels are made of, and the words of their faults: never with the value in them, for it may be a secret. */
import * as z from 'zod';

/** `snake_case` keys of one level as `camelCase`: the options of config.yaml as the code has them. */
export type Camel<Section> = {
  [Key in keyof Section as Key extends string ? CamelWord<Key> : Key]: Section[Key];
};
type CamelWord<Word extends string> = Word extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelWord<Tail>>}`
  : Word;

export function expected(what: string) {
  return {
    error: (issue: { input?: unknown }) =>
      `expected ${what}${issue.input === undefined ? ', but it is missing' : ''}`,
  };
}

/** Messages a second, or at once. A value from the environment is always text. */
export function rate() {
  const words = expected('a number of messages above 0');
  return z.preprocess(
    (value) => (typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Number(value) : value),
    z.number(words).positive(words),
  );
}

export function truth() {
  return z.preprocess(
    (value) => (value === 'true' ? true : value === 'false' ? false : value),
    z.boolean(expected('true or false')),
  );
}
