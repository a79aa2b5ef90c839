/** How a file can be looked at here, by its type and name. Pure. */

export type PreviewKind =
  | { kind: 'picture' | 'markdown' | 'pdf' }
  | { kind: 'code'; language: string }
  /** It says what it is, and can be fetched. */
  | { kind: 'none'; why: 'large' | 'type' };

const PICTURES = ['png', 'jpeg', 'gif', 'webp', 'avif', 'bmp', 'svg+xml'];
const MOST_BYTES = 20_000_000;
/** Types of `application/…` that are text. */
const TEXTS =
  /^application\/(?:.+\+)?(?:json|jsonl|xml|yaml|x-yaml|toml|javascript|typescript|sql|x-sh|x-python|x-tex)$/;

export function previewOf({ type, name, bytes }: { type: string; name: string; bytes: number }): PreviewKind {
  const [bare = ''] = type.toLowerCase().split(';', 1);
  const plain = bare.trim();
  const ending = /\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? '';
  // A picture that holds scripts runs none of them as an `<img>`.
  if (PICTURES.some((each) => plain === `image/${each}`)) return whole({ kind: 'picture' }, bytes);
  if (plain === 'application/pdf') return whole({ kind: 'pdf' }, bytes);
  if (plain === 'text/markdown' || plain === 'text/x-markdown') return { kind: 'markdown' };
  // Of a text, only the beginning is read.
  if (plain.startsWith('text/') || TEXTS.test(plain)) {
    return { kind: 'code', language: ['txt', 'log', 'text'].includes(ending) ? '' : ending };
  }
  return { kind: 'none', why: 'type' };
}

function whole(kind: PreviewKind, bytes: number): PreviewKind {
  return bytes > MOST_BYTES ? { kind: 'none', why: 'large' } : kind;
}

export interface TextBeginning {
  text: string;
  /** More follows. */
  isCut: boolean;
}

/** As far as it is looked at; null: it is no text. A character that was cut in two goes. */
export function beginningIn(bytes: Uint8Array, isCut: boolean): TextBeginning | null {
  if (bytes.includes(0)) return null;
  return { text: new TextDecoder().decode(bytes, { stream: isCut }), isCut };
}
