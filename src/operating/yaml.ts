/**
 * A YAML file as plain data for the configuration: `${NAME}` is taken from the environment, `${file:PATH}` from another
 * file, empty values count as left out, and every fault is told with its line. The text of the file is never quoted: secrets stand in it.
 */
import { isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import { describe } from '../core/errors.js';

export interface YamlFile {
  /** Empty where the file is not YAML at all; a variable that is not set counts as an empty text. */
  data: Record<string, unknown>;
  /** `path`: the keys down to the value; empty for the file itself. */
  faults: { line: number | null; path: string[]; message: string }[];
  /** Where the value of a key begins, or that of the nearest key above it. */
  positionOf(path: readonly PropertyKey[]): { offset: number; line: number } | null;
}

/** Where values come from that do not stand in the file itself. */
export interface Sources {
  environment: Record<string, string | undefined>;
  /** The text of a file, by its path as it is written. Throws an Error that says what was expected. */
  fileText(path: string): string;
}

export function readYaml(source: string, sources: Sources): YamlFile {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false, merge: true });
  const lineAt = (offset: number) => lines.linePos(offset).line;
  const faults: YamlFile['faults'] = [...document.errors, ...document.warnings].map((problem) => ({
    line: lineAt(problem.pos[0]),
    path: [],
    message: problem.message,
  }));
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
      return substituted(value, sources, (message) =>
        faults.push({ line: positionOf(path)?.line ?? null, path, message }),
      );
    }
    if (Array.isArray(value)) return value.map((item, index) => resolved(item, [...path, String(index)]));
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).filter(([, inner]) => inner !== null);
    return Object.fromEntries(entries.map(([key, inner]) => [key, resolved(inner, [...path, key])]));
  }

  let data: Record<string, unknown> = {};
  try {
    if (!isEmpty && faults.length === 0) data = resolved(document.toJS(), []) as Record<string, unknown>;
  } catch (error) {
    const message = `the anchors in it cannot be resolved: ${describe(error)}`;
    faults.push({ line: null, path: [], message });
  }
  return { data, faults, positionOf };
}

/** Replaces `${NAME}` and `${file:PATH}`; `$${` stands for a literal `${`. What is put in is not looked at again. */
function substituted(text: string, sources: Sources, fault: (message: string) => void): string {
  return text.replace(/\$\$\{|\$\{([^}]*)\}?/g, (found, name: string | undefined) => {
    if (name === undefined) return '${';
    const path = /^file:(.*)$/s.exec(name)?.[1]?.trim();
    if (path === '') fault('expected a path behind file:');
    else if (!found.endsWith('}') || (path === undefined && !/^[A-Za-z_]\w*$/.test(name))) {
      fault(`expected the name of an environment variable between \${ and }; a literal \${ is written $\${`);
    } else return path === undefined ? fromEnvironment(name, sources, fault) : fromFile(path, sources, fault);
    return '';
  });
}

function fromEnvironment(name: string, { environment }: Sources, fault: (message: string) => void): string {
  const value = environment[name];
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
