/** The files of the fake Telegram: what messages say of them, and where a bot finds them. */
import { mkdirSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { dirname, join } from 'node:path';
import type { Payload } from './telegram-body.js';
import type { SaidFile, Saying } from './telegram-chats.js';

/** What bots may fetch. */
const MOST_BYTES = 20 << 20;

/** How the sending of a file goes wrong: before its first byte, or in the middle. */
export type FileFault = { drop: 'before' | 'after' } | { stall: 'before' | 'after' };

export interface FileStore {
  /** The fields of the message that brings it to a bot. Each bot has an id of its own for it. */
  put(saying: Pick<Saying, 'photo' | 'voice' | 'document'>, bot: number): Payload;
  /** `local`: the folder into which a server with `--local` puts it. */
  getFile(
    fileId: string,
    bot: number,
    local: string | null,
  ): { result: Payload } | { status: 400; description: string };
  /** Answers for a path below `/file/bot<token>/`; false where nothing lies there. */
  serve(path: string, response: ServerResponse, fault: FileFault | null): boolean;
}

function putInto(folder: string, path: string, bytes: Buffer): string {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, bytes);
  return file;
}

export function createFileStore(): FileStore {
  const files = new Map<string, SaidFile & { path: string; bot: number; unique: string }>();
  const uniques = new Map<SaidFile, string>();

  function keep(file: SaidFile, folder: string, bot: number): Payload {
    const id = `file-id-${files.size + 1}`;
    const unique = uniques.get(file) ?? `unique-${id}`;
    uniques.set(file, unique);
    files.set(id, { ...file, path: `${folder}/file ${files.size + 1}`, bot, unique });
    return { file_id: id, file_unique_id: unique, file_size: file.claimed ?? file.bytes.length };
  }

  const typed = ({ mimeType, name, seconds }: SaidFile) => ({
    ...(mimeType === undefined ? {} : { mime_type: mimeType }),
    ...(name === undefined ? {} : { file_name: name }),
    ...(seconds === undefined ? {} : { duration: seconds }),
  });

  return {
    put({ photo, voice, document }, bot) {
      if (photo) {
        const small = { file_id: 'a-thumbnail', file_unique_id: 'a-thumbnail', width: 90, height: 90 };
        return { photo: [small, { ...keep(photo, 'photos', bot), width: 1280, height: 1280 }] };
      }
      if (voice) return { voice: { mime_type: 'audio/ogg', ...typed(voice), ...keep(voice, 'voice', bot) } };
      if (document) return { document: { ...typed(document), ...keep(document, 'documents', bot) } };
      return {};
    },

    getFile(fileId, bot, local) {
      const file = files.get(fileId);
      if (file === undefined || file.bot !== bot) {
        return {
          status: 400,
          description: 'Bad Request: wrong file_id or the file is temporarily unavailable',
        };
      }
      const { bytes, path, unique } = file;
      if (local === null && bytes.length > MOST_BYTES)
        return { status: 400, description: 'Bad Request: file is too big' };
      return {
        result: {
          file_id: fileId,
          file_unique_id: unique,
          file_size: bytes.length,
          file_path: local === null ? path : putInto(local, path, bytes),
        },
      };
    },

    serve(path, response, fault) {
      const file = [...files.values()].find((each) => each.path === path);
      if (file === undefined) return false;
      const { bytes } = file;
      if (fault === null) {
        response.writeHead(200, {
          'content-type': 'application/octet-stream',
          'content-length': bytes.length,
        });
        response.end(bytes);
        return true;
      }
      const drop = 'drop' in fault ? () => response.socket?.destroy() : () => {};
      if (Object.values(fault).includes('before')) {
        drop();
        return true;
      }
      response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': bytes.length });
      response.write(bytes.subarray(0, Math.ceil(bytes.length / 2)), drop);
      return true;
    },
  };
}
