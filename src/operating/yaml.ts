/**
 * A YAML file as plain data for the configuration: `${NAME}` is taken from the environment, empty values count
 * as left out, and every fault is told with its line. The text of the file is never quoted: secrets stand in it.
 */
import { isMap, isPair, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml';
import { describe } from '../core/errors.js';
import { isRecord } from './keys.js';

interface YamlFault {
  line: number | null;
  /** Keys down to the value, `a.b.0`; empty for the file itself. */
  path: string;
  message: string;
}

export interface YamlFile {
  /** Empty where the file is not YAML at all; a variable that is not set counts as an empty text. */
  data: Record<string, unknown>;
  faults: YamlFault[];
  /** The line on which a key's value stands, or that of the nearest key above it. */
  lineOf(path: PropertyKey[]): number | null;
}

export function readYaml(source: string, environment: Record<string, string | undefined>): YamlFile {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false, merge: true });
  const line = (offset: number) => lines.linePos(offset).line;
  const faults: YamlFault[] = [...document.errors, ...document.warnings].map((problem) => ({
    line: line(problem.pos[0]),
    path: '',
    message: problem.message,
  }));

  const contents = document.contents;
  const empty = contents === null || (isScalar(contents) && contents.value === null);
  if (!empty && !isMap(contents) && faults.length === 0) {
    faults.push({ line: 1, path: '', message: 'expected keys and values, like `timezone: Europe/Berlin`' });
  }
  const readable = faults.length === 0 && !empty;

  visit(document, {
    Scalar(key, node, parents) {
      if (key === 'key' || typeof node.value !== 'string') return;
      node.value = substitute(node.value, environment, (message) => {
        const path = pathTo([...parents, node]).join('.');
        faults.push({ line: node.range ? line(node.range[0]) : null, path, message });
      });
    },
  });
  let data: unknown = {};
  try {
    if (readable) data = withoutEmpty(document.toJS());
  } catch (error) {
    faults.push({
      line: null,
      path: '',
      message: `the anchors in it cannot be resolved: ${describe(error)}`,
    });
  }

  return {
    data: isRecord(data) ? data : {},
    faults,
    lineOf(path) {
      for (let length = path.length; length > 0; length--) {
        const node = document.getIn(path.slice(0, length), true);
        if (hasRange(node)) return line(node.range[0]);
      }
      return null;
    },
  };
}

/** Replaces `${NAME}`; `$${` stands for a literal `${`. */
function substitute(
  text: string,
  environment: Record<string, string | undefined>,
  fault: (message: string) => void,
): string {
  return text.replace(/\$\$\{|\$\{([^}]*)\}?/g, (found, name: string | undefined) => {
    if (name === undefined) return '${';
    if (!/^[A-Za-z_]\w*$/.test(name) || !found.endsWith('}')) {
      fault(`expected the name of an environment variable between \${ and }; a literal \${ is written $\${`);
      return '';
    }
    const value = environment[name];
    if (value === undefined) fault(`expected the environment variable ${name}, but it is not set`);
    return value ?? '';
  });
}

function withoutEmpty(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== null);
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutEmpty(inner)]));
}

/** Keys and places in lists, along the nodes from the root down to a value. */
function pathTo(nodes: readonly unknown[]): string[] {
  return nodes.flatMap((node, depth) => {
    if (isPair(node)) return [isScalar(node.key) ? String(node.key.value) : '?'];
    return isSeq(node) ? [String(node.items.indexOf(nodes[depth + 1]))] : [];
  });
}

function hasRange(node: unknown): node is { range: [number, number, number] } {
  return typeof node === 'object' && node !== null && 'range' in node && Array.isArray(node.range);
}
