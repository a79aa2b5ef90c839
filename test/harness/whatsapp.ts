/**
 * The fake WhatsApp as a `Platform`, for the conversation script and the kill tests. A gateway is linked by the QR code
 * in its log (`whatsapp qr: …`), which holds the secret that the phone needs. It is linked once; after that the gateway
 * logs in with its stored credentials.
 */

import { type SentMessage, startFakeWhatsApp } from '../fakes/whatsapp.js';
import type { FakeWhatsApp, Group } from '../fakes/whatsapp-words.js';
import { type Person, type Place, type Platform, type Saying, voiceNoteOf } from './platform.js';

const LOOK_EVERY_MS = 10;
/** Linking generates a hundred or so keys on both sides. */
const CONNECT_WITHIN_MS = 60_000;
const QR = /whatsapp qr: ([^\s"\\]+)/g;

export async function whatsappPlatform(): Promise<Platform & { whatsapp: FakeWhatsApp }> {
  const whatsapp = await startFakeWhatsApp();
  const tried = new Set<string>();
  let log: () => string = () => '';

  /** Scans the newest code, if it is still valid. */
  function look(): void {
    if (whatsapp.refs().length === 0) return;
    const qr = [...log().matchAll(QR)].at(-1)?.[1];
    if (qr === undefined || tried.has(qr) || !whatsapp.refs().some((ref) => qr.includes(ref))) return;
    tried.add(qr);
    // A gateway killed in the meantime shows a new code after its restart.
    whatsapp.scan(qr).catch(() => {});
  }
  const watch = setInterval(look, LOOK_EVERY_MS);

  const peerOf = ({ number, name }: Person) => whatsapp.peer(number, name);
  const chatOf = ({ kind, number }: Place) =>
    kind === 'direct' ? whatsapp.peer(number) : whatsapp.group(number);

  /** The group of a place, with the next speaker in it; null for a direct chat. */
  function groupOf(place: Place, speaker: Person): Group | null {
    if (place.kind === 'direct') return null;
    const group = whatsapp.group(place.number);
    const peer = peerOf(speaker);
    if (!group.members.includes(peer)) whatsapp.addToGroup(group, peer);
    return group;
  }

  function wordsOf({ from, in: place, text, mention, replyTo }: Saying) {
    const group = groupOf(place, from);
    return {
      from: peerOf(from),
      text,
      ...(group === null ? {} : { in: group }),
      ...(mention === true ? { mention } : {}),
      ...(replyTo === undefined ? {} : { replyTo }),
    };
  }

  function say({ image, file, ...saying }: Saying): string {
    const document = file && { bytes: file.bytes, mimeType: file.mimeType, fileName: file.name };
    return whatsapp.say({ ...wordsOf(saying), ...(image && { image }), ...(document && { document }) }).id;
  }

  return {
    whatsapp,
    name: 'whatsapp',
    recognisesResends: true,
    hasFaces: false,
    config: {
      ...{ enabled: true, web_socket_url: whatsapp.url },
      access: { direct: 'open', groups: 'open' },
      ...{ messages_per_second: 1000, per_chat_burst: 1000 },
    },
    environment: whatsapp.environment,
    attend(source) {
      log = source;
    },
    connected: () => whatsapp.until(whatsapp.loggedIn, 'the gateway is logged in', CONNECT_WITHIN_MS),
    say,
    album: (saying, images) => whatsapp.sayAlbum({ ...wordsOf(saying), images }).map(({ id }) => id),
    forward: (saying) => whatsapp.say({ ...wordsOf(saying), forwarded: true }).id,
    edit: (_place, id, text) => whatsapp.edit({ id }, text),
    react(from, place, id, sign) {
      const sent = whatsapp.sentTo(chatOf(place)).find((each) => each.id === id);
      if (sent === undefined) throw new Error(`we sent no message ${id} there`);
      groupOf(place, from);
      whatsapp.react(peerOf(from), sent, sign);
    },
    remove(_place, id) {
      // Administrators delete others' messages in WhatsApp's own app; we are not notified.
      const ours = whatsapp.sent.find((sent) => sent.id === id);
      if (ours === undefined) whatsapp.revoke({ id });
      else ours.revoked = true;
    },
    command: (from, place, text) => void say({ from, in: place, text }),
    shown: (place) =>
      whatsapp
        .sentTo(chatOf(place))
        .filter(({ revoked }) => !revoked)
        .map((sent) => ({
          id: sent.id,
          text: sent.text,
          files: filesOf(sent),
          replyTo: sent.quotedId,
          at: sent.at,
          cut: sent.cut || !sent.acked,
          speaker: null,
          heading: /^\*([^*\n]+)\*(?:\n|$)/.exec(sent.text)?.[1] ?? null,
        })),
    signs(place) {
      const chat = chatOf(place);
      const ids = 'members' in chat ? [chat.id] : [chat.pn, chat.lid];
      return whatsapp.reactions.filter(({ to }) => ids.includes(to)).map(({ on, emoji }) => ({ on, emoji }));
    },
    typing(place) {
      const chat = chatOf(place);
      const ids = 'members' in chat ? [chat.id] : [chat.pn, chat.lid];
      return whatsapp.presences.filter(
        ({ to, state }) => state === 'composing' && to !== null && ids.includes(to),
      ).length;
    },
    unreadable: () => whatsapp.complaints,
    onEvent: whatsapp.onEvent,
    chatId: (place) =>
      `whatsapp_${place.kind === 'direct' ? whatsapp.peer(place.number).pn : whatsapp.group(place.number).id}`,
    personId: (person) => `whatsapp_${peerOf(person).pn}`,
    async close() {
      clearInterval(watch);
      await whatsapp.close();
    },
  };
}

function filesOf({ file, kind, voiceSeconds }: SentMessage): string[] {
  if (voiceSeconds !== null) return [voiceNoteOf(voiceSeconds)];
  return file === null ? [] : [file.name ?? kind];
}
