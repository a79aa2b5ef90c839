/** Two texts compared line by line. */
import { useTexts } from '../app.ts';

export interface DifferenceLine {
  kind: 'same' | 'gone' | 'new';
  line: string;
}

/** A longer middle is shown as wholly replaced: comparing costs the product of both. */
const MOST_CELLS = 4_000_000;

/** The lines of both, in order, with the longest part that both have in common. */
export function differenceOf(before: string, after: string): DifferenceLine[] {
  const [a, b] = [linesOf(before), linesOf(after)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const same = (lines: string[]): DifferenceLine[] => lines.map((line) => ({ kind: 'same', line }));
  return [
    ...same(a.slice(0, start)),
    ...middleOf(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...same(a.slice(a.length - end)),
  ];
}

/** An empty text has none. */
function linesOf(text: string): string[] {
  return text === '' ? [] : text.split(/\r?\n/);
}

function middleOf(a: string[], b: string[]): DifferenceLine[] {
  if (a.length * b.length > MOST_CELLS) {
    return [
      ...a.map((line): DifferenceLine => ({ kind: 'gone', line })),
      ...b.map((line): DifferenceLine => ({ kind: 'new', line })),
    ];
  }
  // common[i * width + j]: how many lines the rests from i and j have in common.
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: DifferenceLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    const [old, fresh] = [a[i], b[j]];
    if (old !== undefined && old === fresh) {
      lines.push({ kind: 'same', line: old });
      i++;
      j++;
    } else if (old !== undefined && (fresh === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ kind: 'gone', line: old });
      i++;
    } else {
      lines.push({ kind: 'new', line: fresh ?? '' });
      j++;
    }
  }
  return lines;
}

const SIGNS = { same: ' ', gone: '−', new: '+' };

/** Only the changed lines with a few around them. */
export function Difference({
  before,
  after,
  around = 2,
}: {
  before: string;
  after: string;
  around?: number;
}) {
  const { kit } = useTexts();
  const lines = differenceOf(before, after);
  const changed = lines.map(({ kind }) => kind !== 'same');
  const isShown = lines.map((_, n) => changed.slice(Math.max(0, n - around), n + around + 1).includes(true));
  if (!changed.includes(true)) return <p class="soft small">{kit.noDifference}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also for those without a mouse.
    <pre class="difference" tabIndex={0}>
      {lines.map(({ kind, line }, n) => {
        if (!isShown[n]) return isShown[n - 1] ? <span key={n}>⋯</span> : null;
        const words = `${SIGNS[kind]} ${line}`;
        if (kind === 'new') return <ins key={n}>{words}</ins>;
        return kind === 'gone' ? <del key={n}>{words}</del> : <span key={n}>{words}</span>;
      })}
    </pre>
  );
}
