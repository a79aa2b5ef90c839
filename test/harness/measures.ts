/** Sizes of `src/` that the architecture test limits, counted in the syntax tree. */
import { parseSync, Visitor } from 'oxc-parser';

export interface Measures {
  files: number;
  lines: number;
  /** Median of lines per file. */
  median: number;
  longestFile: { name: string; lines: number };
  /** Interfaces and exported types declared more than once: `Name: file, file`. */
  declaredTwice: string[];
  picks: number;
  /** Functions by length, longest first; nested functions count towards the outer one, too. */
  functions: { name: string; lines: number }[];
  /** Interfaces by number of own members, largest first. */
  interfaces: { name: string; members: number }[];
}

/** `sources`: text by file name. Throws on a syntax error. */
export function measure(sources: Map<string, string>): Measures {
  const lines = new Map([...sources].map(([file, source]) => [file, source.trimEnd().split('\n').length]));
  const sorted = [...lines].sort(([, a], [, b]) => a - b);
  const declared = new Map<string, string[]>();
  const functions: Measures['functions'] = [];
  const interfaces: Measures['interfaces'] = [];
  let picks = 0;
  for (const [file, source] of sources) {
    const { program, errors } = parseSync(file, source);
    if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
    const lineAt = lineCounter(source);
    const declare = (name: string) => declared.set(name, [...(declared.get(name) ?? []), file]);
    const count = (node: { start: number; end: number; id?: { name: string } | null }) =>
      functions.push({
        name: `${file}:${lineAt(node.start)} ${node.id?.name ?? ''}`.trim(),
        lines: lineAt(node.end) - lineAt(node.start) + 1,
      });
    new Visitor({
      TSInterfaceDeclaration(node) {
        declare(node.id.name);
        interfaces.push({ name: `${file}: ${node.id.name}`, members: node.body.body.length });
      },
      ExportNamedDeclaration(node) {
        if (node.declaration?.type === 'TSTypeAliasDeclaration') declare(node.declaration.id.name);
      },
      TSTypeReference(node) {
        if (node.typeName.type === 'Identifier' && node.typeName.name === 'Pick') picks += 1;
      },
      FunctionDeclaration: count,
      FunctionExpression: count,
      ArrowFunctionExpression: count,
    }).visit(program);
  }
  return {
    files: sources.size,
    lines: sorted.reduce((sum, [, n]) => sum + n, 0),
    median: sorted[Math.floor(sorted.length / 2)]?.[1] ?? 0,
    longestFile: { name: sorted.at(-1)?.[0] ?? '', lines: sorted.at(-1)?.[1] ?? 0 },
    declaredTwice: [...declared]
      .filter(([, files]) => files.length > 1)
      .map(([name, files]) => `${name}: ${files.join(', ')}`)
      .sort(),
    picks,
    functions: functions.sort((a, b) => b.lines - a.lines),
    interfaces: interfaces.sort((a, b) => b.members - a.members),
  };
}

/** Converts an offset in a text to a line number, from 1. */
function lineCounter(source: string): (position: number) => number {
  const ends = [...source.matchAll(/\n/g)].map((match) => match.index);
  return (position) => {
    let from = 0;
    let to = ends.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((ends[middle] ?? 0) < position) from = middle + 1;
      else to = middle;
    }
    return from + 1;
  };
}
