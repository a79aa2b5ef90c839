/**
 * Finds verbs of the store (generators) that are called without `yield*`: such a call does nothing, silently. Also finds
 * those that are given to a method of an array, which would take the generator for the result.
 */
import { dirname, join } from 'node:path';
import { parseSync } from 'oxc-parser';

/** A node of the syntax tree; its properties are read by name. */
interface Node {
  type: string;
  start: number;
  end: number;
  [property: string]: unknown;
}

const OF_ARRAYS =
  /^(?:map|flatMap|filter|some|every|find|findIndex|findLast|findLastIndex|forEach|reduce|sort|toSorted|from)$/;
const FUNCTIONS = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'];

/** `file:line: call` for each; `sources`: text by file name. */
export function withoutYield(sources: Map<string, string>): string[] {
  const files = new Map([...sources].map(([file, source]) => [file, parsed(file, source)]));
  const verbs = new Map([...files].map(([file, nodes]) => [file, declared(nodes, sources.get(file) ?? '')]));
  // A function that returns a verb of another is one, too: repeated until no more are found.
  for (let before = -1, now = sizeOf(verbs); now > before; ) {
    before = now;
    for (const [file, nodes] of files) {
      const names = verbs.get(file) ?? new Set();
      for (const name of [...imported(file, nodes, verbs), ...returning(nodes, names)]) names.add(name);
    }
    now = sizeOf(verbs);
  }
  return [...files].flatMap(([file, nodes]) => {
    const source = sources.get(file) ?? '';
    const names = verbs.get(file) ?? new Set();
    return nodes
      .filter((path) => isLost(path, names))
      .map(([node]) => {
        const line = source.slice(0, node.start).split('\n').length;
        return `${file}:${line}: ${source.slice(node.start, node.end).split('\n')[0]}`;
      });
  });
}

const sizeOf = (verbs: Map<string, Set<string>>) =>
  [...verbs.values()].reduce((sum, { size }) => sum + size, 0);

/** A node, its parent, the parent of that, and so on. */
type Path = [Node, ...Node[]];

function parsed(file: string, source: string): Path[] {
  const { program, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
  const found: Path[] = [];
  function visit(value: unknown, above: Node[]): void {
    if (Array.isArray(value)) for (const each of value) visit(each, above);
    if (!isNode(value)) return;
    const path: Path = [value, ...above];
    found.push(path);
    for (const child of Object.values(value)) visit(child, path);
  }
  visit(program, []);
  return found;
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}

function nameOf(node: unknown): string {
  if (!isNode(node)) return '';
  if (node.type === 'MemberExpression') return `${nameOf(node.object)}.${nameOf(node.property)}`;
  return typeof node.name === 'string' ? node.name : '';
}

/** Generators (asynchronous ones are no verbs), and parameters that are typed as verbs. */
function declared(paths: Path[], source: string): Set<string> {
  const found = new Set<string>();
  for (const [node, parent] of paths) {
    if (node.generator === true && node.async !== true) found.add(functionName(node, parent));
    if (node.type === 'Identifier' && isNode(node.typeAnnotation)) {
      const { start, end } = node.typeAnnotation;
      if (/=> *(?:\w+\.)?Verb<[^=]*$/.test(source.slice(start, end))) found.add(nameOf(node));
    }
  }
  found.delete('');
  return found;
}

function functionName(node: Node, parent: Node | undefined): string {
  return nameOf(node.id) || (parent?.type === 'VariableDeclarator' ? nameOf(parent.id) : '');
}

/** The names under which a file imports verbs of others. */
function imported(file: string, paths: Path[], verbs: Map<string, Set<string>>): string[] {
  return paths.flatMap(([node, parent]) => {
    if (!/^Import(?:Namespace)?Specifier$/.test(node.type) || !isNode(parent?.source)) return [];
    const target = join(dirname(file), `${parent.source.value}`).replace(/\.js$/, '.ts');
    const theirs = verbs.get(target) ?? new Set();
    const local = nameOf(node.local);
    if (node.type === 'ImportNamespaceSpecifier') return [...theirs].map((name) => `${local}.${name}`);
    return theirs.has(nameOf(node.imported)) ? [local] : [];
  });
}

/** Functions, not generators themselves, that return a call of a verb. */
function returning(paths: Path[], verbs: Set<string>): string[] {
  return paths.flatMap((path) => {
    if (!isCallOf(path[0], verbs)) return [];
    const [from, ...above] = outermost(path);
    const parent = above[0];
    const isReturned =
      parent?.type === 'ReturnStatement' ||
      (parent?.type === 'ArrowFunctionExpression' && parent.body === from);
    const maker = above.findIndex(({ type }) => FUNCTIONS.includes(type));
    const made = above[maker];
    if (!isReturned || made === undefined || made.generator === true) return [];
    const name = functionName(made, above[maker + 1]);
    return name === '' ? [] : [name];
  });
}

function isCallOf(node: Node, verbs: Set<string>): boolean {
  return node.type === 'CallExpression' && verbs.has(nameOf(node.callee));
}

/** Goes up while the value stays the same: out of brackets and branches. */
function outermost(path: Path): Path {
  const [node, parent, ...above] = path;
  if (parent === undefined) return path;
  const isBranch = parent.type === 'ConditionalExpression' && parent.test !== node;
  return isBranch || parent.type === 'ParenthesizedExpression' ? outermost([parent, ...above]) : path;
}

function isLost(path: Path, verbs: Set<string>): boolean {
  const [node, parent] = path;
  const isVerb = node.generator === true || verbs.has(nameOf(node));
  if (isVerb && parent !== undefined && isGivenToArray(node, parent)) return true;
  if (!isCallOf(node, verbs)) return false;
  const [from, above, over, ...others] = outermost(path);
  if (above === undefined) return true;
  if (above.type === 'YieldExpression') return above.delegate !== true;
  if (above.type === 'CallExpression') return nameOf(above.callee) !== 'runVerb';
  if (above.type === 'ArrowFunctionExpression' && above.body === from) {
    return over !== undefined && isGivenToArray(above, over);
  }
  if (above.type !== 'ReturnStatement') return true;
  const within = [over, ...others].find((each) => each !== undefined && FUNCTIONS.includes(each.type));
  return within?.generator === true;
}

function isGivenToArray(node: Node, parent: Node): boolean {
  if (parent.type !== 'CallExpression' || parent.callee === node) return false;
  return isNode(parent.callee) && OF_ARRAYS.test(nameOf(parent.callee.property));
}
