/** Archives that no ordinary tar would create: a test sets each header freely. */
import { gzipSync } from 'node:zlib';
import { Header } from 'tar';

export interface Crafted {
  path: string;
  body?: string | Buffer;
  /** The size in the header; `body` follows in any case. */
  size?: number;
  type?: 'File' | 'Directory' | 'CharacterDevice' | 'FIFO' | 'Link' | 'SymbolicLink';
  mode?: number;
  uid?: number;
  linkpath?: string;
}

export function tarball(entries: Crafted[], behind = Buffer.alloc(1024)): Buffer {
  return gzipSync(Buffer.concat([...entries.flatMap(blocksOf), behind]));
}

function blocksOf(entry: Crafted): Buffer[] {
  const { path, type = 'File', mode = 0o644, uid = 0, linkpath = '' } = entry;
  const body = Buffer.from(entry.body ?? '');
  const header = new Header({ path, type, mode, uid, gid: uid, linkpath, size: entry.size ?? body.length });
  const block = Buffer.alloc(512);
  header.encode(block);
  return [block, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
}
