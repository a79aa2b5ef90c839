/** The files of the fake Discord: under links that are signed and run out, as Discord's do. */
import type { ServerResponse } from 'node:http';
import type { Attachment, AttachmentOptions } from './discord-words.js';

export interface Cdn {
  add(name: string, bytes: Buffer, type: string | null, options?: AttachmentOptions): Attachment;
  /** `path` is what follows `/cdn/`. */
  serve(path: string, query: URLSearchParams, response: ServerResponse): void;
  /** The same file under a link that holds again; null for one that never was. */
  refreshed(url: string): string | null;
  expireLinks(): void;
  fetched(id: string): number;
}

interface Stored {
  attachment: Attachment;
  bytes: Buffer;
  served: NonNullable<AttachmentOptions['served']>;
  fetched: number;
}

/** `root` tells where the files are, once that is known. */
export function createCdn(root: () => string, newId: () => string): Cdn {
  const files = new Map<string, Stored>();
  let signature = 1;

  return {
    add(name, bytes, type, { served = 'whole', voiceSeconds, claimedSize, extra = {} } = {}) {
      const id = newId();
      const link = (under: string) =>
        `${root()}/${under}/${id}/${id}/${encodeURIComponent(name)}?ex=1&is=1&hm=${signature}`;
      const attachment: Attachment = {
        id,
        filename: name,
        size: claimedSize ?? bytes.length,
        content_type: type,
        get url() {
          return link('attachments');
        },
        get proxy_url() {
          return link('attachments');
        },
        flags: 0,
        ...(voiceSeconds === undefined ? {} : { duration_secs: voiceSeconds, waveform: 'AAAA' }),
        ...extra,
      };
      files.set(id, { attachment, bytes, served, fetched: 0 });
      return attachment;
    },

    serve(path, query, response) {
      const stored = files.get(path.split('/')[2] ?? '');
      if (stored !== undefined) stored.fetched += 1;
      if (stored === undefined || stored.served === 'gone' || query.get('hm') !== String(signature)) {
        response.writeHead(404, { 'content-type': 'text/plain' });
        response.end('This content is no longer available.');
        return;
      }
      const { bytes, served, attachment } = stored;
      if (served === 'never') return;
      if (typeof served === 'object') {
        response.writeHead(302, { location: served.sentOnTo }).end();
        return;
      }
      response.writeHead(200, {
        'content-type': attachment.content_type ?? 'application/octet-stream',
        'content-length': bytes.length,
      });
      if (served === 'whole') response.end(bytes);
      else response.write(bytes.subarray(0, bytes.length >> 1), () => response.destroy());
    },

    refreshed: (url) => files.get(new URL(url).pathname.split('/')[4] ?? '')?.attachment.url ?? null,
    expireLinks() {
      signature += 1;
    },
    fetched: (id) => files.get(id)?.fetched ?? 0,
  };
}
