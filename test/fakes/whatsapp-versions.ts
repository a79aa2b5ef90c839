/**
 * Which versions of WhatsApp Web the fake still lets in, and `/sw.js`, where a browser finds the newest.
 * WhatsApp retires old ones and closes with `<failure reason='405'>` before any QR code (WhiskeySockets/Baileys#1937,
 * #2394); `client_revision` in sw.js of web.whatsapp.com is the third number of the newest (rc14, generics.js).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { DEFAULT_CONNECTION_CONFIG, type proto } from '@whiskeysockets/baileys';

export interface Versions {
  /** What is older than 2.3000.<revision> is refused from now on, and that one is told by sw.js. */
  retireBelow(revision: number): void;
  /** How sw.js is answered instead: not at all, with a page of something else, with a status. */
  breakLookUp(how: 'stall' | 'garbage' | number | null): void;
  /** How often sw.js was asked for. */
  lookUps(): number;
  isRetired(payload: proto.ClientPayload): boolean;
  serve(request: IncomingMessage, response: ServerResponse): void;
}

/** `look` is called after every request. */
export function makeVersions(look: () => void): Versions {
  let least = 0;
  let newest = DEFAULT_CONNECTION_CONFIG.version[2];
  let broken: 'stall' | 'garbage' | number | null = null;
  let lookUps = 0;

  return {
    retireBelow(revision) {
      least = revision;
      newest = revision;
    },
    breakLookUp(how) {
      broken = how;
    },
    lookUps: () => lookUps,

    isRetired({ userAgent }) {
      const { primary, secondary, tertiary } = userAgent?.appVersion ?? {};
      if (primary !== 2 || secondary !== 3000)
        throw new Error(`a version of its own: ${primary}.${secondary}`);
      return (tertiary ?? 0) < least;
    },

    serve(request, response) {
      if (request.url !== '/sw.js') {
        response.writeHead(426).end();
        return;
      }
      lookUps += 1;
      if (typeof broken === 'number') response.writeHead(broken).end();
      else if (broken === 'garbage') response.end('<html>Update your browser</html>');
      else if (broken === null) response.end(serviceWorker(newest));
      look();
    },
  };
}

/** A line in the manner of the real one, in which quotation marks are escaped. */
function serviceWorker(revision: number): string {
  const data = String.raw`{\"server_revision\":${revision - 7},\"client_revision\":${revision},\"push_phase\":\"C3\"}`;
  return `importScripts("rsrc.js");self.__swData=JSON.parse("${data}");`;
}
