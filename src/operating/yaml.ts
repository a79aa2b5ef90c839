/**
 * A YAML file as plain data for the configuration: `${NAME}` is taken from the environment, `${file:PATH}` from another
 * file, and every fault is told with its line. The text of the file is never quoted: secrets stand in it.
 */
import { type Document, isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import { describe } from '../core/errors.js';
import { ALIASES, placesIn, strangeAliases, wordsOf } from './yaml-problems.js';

export interface YamlFile {
  /** Empty where the file is not YAML at all. null: a key without a value, also where that is a variable that is set to nothing. */
  data: Record<string, unknown>;
  /** `path`: the keys down to the value; empty for the file itself. */
  faults: Fault[];
  /** What was taken from the environment, and the keys down to the value that it is part of. */
  variables: Variable[];
  /** Where the value of a key begins, or that of the nearest key above it. */
  positionOf(path: readonly PropertyKey[]): { offset: number; line: number } | null;
}

export interface Variable {
  name: string;
  value: string;
  path: string[];
}

interface Fault {
  line: number | null;
  path: string[];
  message: string;
  /** The file is not YAML as it stands, so that anything may have been taken for a key. */
  guessed?: true;
}

/** Where values come from that do not stand in the file itself. */
export interface Sources {
  environment: Record<string, string | undefined>;
  /** The text of a file, by its path as it is written. Throws an Error that says what was expected. */
  fileText(path: string): string;
}

export function readYaml(source: string, sources: Sources): YamlFile {
  const lines = new LineCounter();
  // Keys that are no text would be told of with what they hold.
  const document = parseDocument(source, {
    lineCounter: lines,
    prettyErrors: false,
    merge: true,
    stringKeys: true,
  });
  const lineAt = (offset: number) => lines.linePos(offset).line;
  const faults = problemsIn(document, source, lineAt);
  const variables: Variable[] = [];
  const { contents } = document;
  const isEmpty = contents === null || (isScalar(contents) && contents.value === null);
  if (!isEmpty && !isMap(contents) && faults.length === 0) {
    faults.push({ line: 1, path: [], message: 'expected keys and values, like `timezone: Europe/Berlin`' });
  }

  function positionOf(path: readonly PropertyKey[]): { offset: number; line: number } | null {
    for (let length = path.length; length > 0; length--) {
      const node: unknown = document.getIn(path.slice(0, length), true);
      if (isNode(node) && node.range) return { offset: node.range[0], line: lineAt(node.range[0]) };
    }
    return null;
  }

  function resolved(value: unknown, path: string[]): unknown {
    if (typeof value === 'string') {
      return substituted(value, sources, {
        fault: (message) => faults.push({ line: positionOf(path)?.line ?? null, path, message }),
        variable: (name, given) => variables.push({ name, value: given, path }),
      });
    }
    if (Array.isArray(value)) return value.map((item, index) => resolved(item, [...path, String(index)]));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key, valueGiven(inner, [...path, key])]),
    );
  }

  function valueGiven(given: unknown, path: string[]): unknown {
    const known = faults.length;
    const value = resolved(given, path);
    return value === '' && given !== '' && faults.length === known ? null : value;
  }

  let data: Record<string, unknown> = {};
  try {
    if (!isEmpty && faults.length === 0) data = resolved(document.toJS(), []) as Record<string, unknown>;
  } catch {
    // What has been found on the way may have been found many times.
    faults.splice(0, faults.length, ...aliasesIn(document, lineAt));
  }
  return { data, faults, variables, positionOf };
}

function problemsIn(document: Document.Parsed, source: string, lineAt: (offset: number) => number): Fault[] {
  const problems = [...document.errors, ...document.warnings];
  const places = problems.length > 0 ? placesIn(document) : [];
  const faults = problems.map((problem): Fault => {
    const isAtEnd = problem.pos[0] >= source.length;
    const offset = isAtEnd ? source.length - 1 : problem.pos[0];
    const place = places.findLast(
      ({ begins, ends }) => begins <= offset && (offset < ends || lineAt(begins) === lineAt(offset)),
    );
    // What is not closed ends with the file, and is better told where it begins.
    const line = lineAt(isAtEnd && place ? place.begins : offset);
    return { line, path: place?.path ?? [], message: wordsOf(problem), guessed: true };
  });
  // One sign at the wrong place makes several of what is behind it.
  return faults.filter(
    ({ line, message }, n) =>
      faults.findIndex((fault) => fault.line === line && fault.message === message) === n,
  );
}

function aliasesIn(document: Document.Parsed, lineAt: (offset: number) => number): Fault[] {
  const faults = strangeAliases(document).map(
    ({ begins, path, message }): Fault => ({ line: lineAt(begins), path, message, guessed: true }),
  );
  return faults.length > 0 ? faults : [{ line: null, path: [], message: ALIASES, guessed: true }];
}

interface Told {
  fault(message: string): void;
  variable(name: string, value: string): void;
}

/** Replaces `${NAME}` and `${file:PATH}`; `$${` stands for a literal `${`. What is put in is not looked at again. */
function substituted(text: string, sources: Sources, told: Told): string {
  const { fault } = told;
  return text.replace(/\$\$\{|\$\{([^}]*)\}?/g, (found, name: string | undefined) => {
    if (name === undefined) return '${';
    const path = /^file:(.*)$/s.exec(name)?.[1]?.trim();
    if (path === '') fault('expected a path behind file:');
    else if (!found.endsWith('}') || (path === undefined && !/^[A-Za-z_]\w*$/.test(name))) {
      fault(`expected the name of an environment variable between \${ and }; a literal \${ is written $\${`);
    } else return path === undefined ? fromEnvironment(name, sources, told) : fromFile(path, sources, fault);
    return '';
  });
}

function fromEnvironment(name: string, { environment }: Sources, { fault, variable }: Told): string {
  const value = environment[name];
  if (value) variable(name, value);
  if (value === undefined) fault(`expected the environment variable ${name}, but it is not set`);
  return value ?? '';
}

function fromFile(path: string, { fileText }: Sources, fault: (message: string) => void): string {
  try {
    return fileText(path);
  } catch (error) {
    fault(describe(error));
    return '';
  }
}
