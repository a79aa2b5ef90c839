/** Converts a rich message (Bot API 10.1) to Markdown. Unknown blocks keep their text, in order. Pure. */
import { readBlock, type ShownContent } from './update.js';

type Node = Record<string, unknown>;

/** Telegram nests up to 16 levels. */
const DEEPEST = 40;

export function markdownOf({ blocks: all }: NonNullable<ShownContent['rich_message']>): string {
  return blocks(all, 0);
}

/** Files of its blocks, in order. */
export function blockFilesIn(rich: ShownContent['rich_message']): ShownContent[] {
  return filesBelow(rich?.blocks, 0);
}

function filesBelow(value: unknown, depth: number): ShownContent[] {
  return nodesIn(value, depth).flatMap((node) => {
    const block = readBlock(node);
    const { voice = block.voice_note } = block;
    const files = voice === undefined ? block : { ...block, voice };
    return [files, ...filesBelow([node.blocks, node.items], depth + 1)];
  });
}

function blocks(value: unknown, depth: number, between = '\n\n'): string {
  const each = nodesIn(value, depth).map((node) => block(node, depth + 1));
  return each.filter((text) => text.trim() !== '').join(between);
}

function block(node: Node, depth: number): string {
  const text = () => inline(node.text, depth);
  const below = () => blocks(node.blocks, depth);
  switch (node.type) {
    case 'paragraph':
    case 'footer':
      return text();
    case 'heading':
      return `${'#'.repeat(SIZES.find((size) => size === node.size) ?? 2)} ${text()}`;
    case 'pre':
      return `\`\`\`${stringIn(node.language)}\n${text()}\n\`\`\``;
    case 'mathematical_expression':
      return `$$${stringIn(node.expression)}$$`;
    case 'divider':
      return '---';
    case 'anchor':
      return '';
    case 'list':
      return nodesIn(node.items, depth)
        .map((item) => listItem(item, depth))
        .join('\n');
    case 'blockquote':
      return quote(below(), node, depth);
    case 'expandable_blockquote':
    case 'pullquote':
      return quote(text(), node, depth);
    case 'table':
      return lines(caption(node.caption, depth), table(node.cells, depth));
    case 'details':
      return lines(`**${inline(node.summary, depth)}**`, below());
    case 'buttons':
      return nodesIn(node.buttons, depth)
        .map((button) => `[${inline(button.text, depth)}]`)
        .join(' ');
    case 'map':
      return lines(location(node.location), caption(node.caption, depth));
    default:
      // Blocks with files may have a caption.
      return lines(
        loose({ ...node, blocks: [], caption: null }, depth),
        below(),
        caption(node.caption, depth),
      );
  }
}

function listItem(item: Node, depth: number): string {
  const label = stringIn(item.label);
  const sign = /^\w+[.)]?$/.test(label) ? label.replace(/\w$/, '$&.') : '-';
  const box = item.has_checkbox === true ? `[${item.is_checked === true ? 'x' : ' '}] ` : '';
  return `${sign} ${box}${blocks(item.blocks, depth, '\n').replaceAll('\n', '\n  ')}`;
}

function quote(text: string, { credit }: Node, depth: number): string {
  const by = inline(credit, depth);
  const said = lines(text, by && `— ${by}`);
  return said === '' ? '' : said.replaceAll(/^/gm, '> ');
}

function table(rows: unknown, depth: number): string {
  const cells = listIn(rows).map((row) => nodesIn(row, depth).map((cell) => inline(cell.text, depth)));
  const [head = [], ...others] = cells.map((row) => `| ${row.join(' | ')} |`);
  if (cells.length === 0) return '';
  return [head, `|${'---|'.repeat(cells[0]?.length ?? 1)}`, ...others].join('\n');
}

/** A text, or one with a credit. */
function caption(value: unknown, depth: number): string {
  const node = nodeIn(value);
  if (node === null || node.type !== undefined) return inline(value, depth);
  return lines(inline(node.text, depth), inline(node.credit, depth));
}

function location(value: unknown): string {
  const { latitude, longitude } = nodeIn(value) ?? {};
  return typeof latitude === 'number' && typeof longitude === 'number'
    ? `[location ${latitude}, ${longitude}]`
    : '[location]';
}

const SIZES = [1, 2, 3, 4, 5, 6];
const MARKS: Record<string, string> = {
  ...{ bold: '**', italic: '_', strikethrough: '~~', code: '`', spoiler: '||', marked: '==' },
};

function inline(value: unknown, depth: number): string {
  if (typeof value === 'string') return value;
  if (depth > DEEPEST) return '';
  if (Array.isArray(value)) return value.map((each) => inline(each, depth + 1)).join('');
  const node = nodeIn(value);
  if (node === null) return '';
  const text = inline(node.text, depth + 1);
  const mark =
    typeof node.type === 'string' && Object.hasOwn(MARKS, node.type) ? MARKS[node.type] : undefined;
  if (mark !== undefined) return text.trim() === '' ? text : `${mark}${text}${mark}`;
  switch (node.type) {
    case 'url':
      return !node.url || text === node.url ? text : `[${text}](${stringIn(node.url)})`;
    case 'mathematical_expression':
      return `$${stringIn(node.expression)}$`;
    case 'custom_emoji':
      return stringIn(node.alternative_text);
    case 'button':
      return `[${inline(nodeIn(node.button)?.text, depth + 1)}]`;
    default:
      return text || loose({ ...node, text: '' }, depth);
  }
}

/** All texts in a value of unknown form. */
function loose(value: unknown, depth: number): string {
  if (depth > DEEPEST) return '';
  const texts = Array.isArray(value)
    ? value.map((each) => (typeof each === 'string' ? each : loose(each, depth + 1)))
    : Object.entries(nodeIn(value) ?? {}).map(([name, each]) => {
        if (name === 'text') return inline(each, depth + 1);
        return typeof each === 'string' ? '' : loose(each, depth + 1);
      });
  return lines(...texts);
}

function lines(...texts: string[]): string {
  return texts.filter(Boolean).join('\n');
}

function nodesIn(value: unknown, depth: number): Node[] {
  if (depth > DEEPEST) return [];
  return listIn(value)
    .flat()
    .map(nodeIn)
    .filter((node) => node !== null);
}

function listIn(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function nodeIn(value: unknown): Node | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Node) : null;
}

function stringIn(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
