/** Stanzas: making them, and reading what stands in them. */
import { type BinaryNode, S_WHATSAPP_NET } from '@whiskeysockets/baileys';

type Attributes = Record<string, string | undefined>;

/** A stanza; attributes that are undefined are left out. */
export function stanza(
  tag: string,
  attributes: Attributes = {},
  content?: BinaryNode['content'],
): BinaryNode {
  const attrs = Object.fromEntries(
    Object.entries(attributes).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  return content === undefined ? { tag, attrs } : { tag, attrs, content };
}

export function children(node: BinaryNode | undefined, tag?: string): BinaryNode[] {
  if (!Array.isArray(node?.content)) return [];
  return tag === undefined ? node.content : node.content.filter((child) => child.tag === tag);
}

export function child(node: BinaryNode | undefined, tag: string): BinaryNode | undefined {
  return children(node, tag)[0];
}

export function bytesOf(node: BinaryNode | undefined): Buffer | null {
  if (node?.content instanceof Uint8Array) return Buffer.from(node.content);
  return typeof node?.content === 'string' ? Buffer.from(node.content) : null;
}

/** The bytes of a child that must be there. */
export function needed(node: BinaryNode | undefined, tag: string): Buffer {
  const bytes = bytesOf(child(node, tag));
  if (bytes === null) throw new Error(`<${node?.tag ?? 'nothing'}> came without <${tag}>`);
  return bytes;
}

export function numberIn(bytes: Buffer): number {
  return bytes.length === 0 ? 0 : bytes.readUIntBE(0, bytes.length);
}

/** The answer to a query. */
export function answer(query: BinaryNode, content?: BinaryNode[]): BinaryNode {
  return stanza('iq', { id: query.attrs.id, from: S_WHATSAPP_NET, type: 'result' }, content);
}

export function refusal(query: BinaryNode, code: number, text = 'refused'): BinaryNode {
  return stanza('iq', { id: query.attrs.id, from: query.attrs.to, type: 'error' }, [
    stanza('error', { code: String(code), text }),
  ]);
}

export function seconds(ms: number): string {
  return String(Math.floor(ms / 1000));
}
