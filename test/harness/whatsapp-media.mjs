/**
 * Sends a process's requests for WhatsApp's media hosts to a CDN on loopback and trusts its authority there.
 * `node --import` loads it into a gateway, which has no setting for that; everything else goes where it went.
 */
import tls from 'node:tls';

const MEDIA_HOST = /(^|\.)whatsapp\.net$/;

/** Returns what undoes it. */
export function serveMediaFrom({ port, ca }) {
  const connect = tls.connect;
  tls.connect = (...given) => {
    const [options, ...rest] = given;
    const name = options?.servername || options?.host;
    if (typeof name !== 'string' || !MEDIA_HOST.test(name)) return connect(...given);
    return connect({ ...options, host: '127.0.0.1', port, servername: name, ca }, ...rest);
  };
  return () => {
    tls.connect = connect;
  };
}

const { COTERIE_FAKE_MEDIA_PORT, COTERIE_FAKE_MEDIA_CA } = process.env;
if (COTERIE_FAKE_MEDIA_PORT && COTERIE_FAKE_MEDIA_CA) {
  serveMediaFrom({ port: Number(COTERIE_FAKE_MEDIA_PORT), ca: COTERIE_FAKE_MEDIA_CA });
}
