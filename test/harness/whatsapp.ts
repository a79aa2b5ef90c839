/**
 * The fake WhatsApp as one of the platforms that the conversation script and the kills run on. A gateway is linked by
 * scanning the QR code it logs (`whatsapp qr: …`): only there stands the secret that WhatsApp's phone answers with,
 * so the platform attends to its log. Once is enough; after that the gateway logs in with what it stored.
 */

import { type SentMessage, startFakeWhatsApp } from '../fakes/whatsapp.js';
import type { FakeWhatsApp, Group } from '../fakes/whatsapp-words.js';
import { type Person, type Place, type Platform, type Saying, voiceNoteOf } from './platform.js';

const LOOK_EVERY_MS = 10;
/** Linking makes some hundred keys on both sides. */
const CONNECT_WITHIN_MS = 60_000;
const QR = /whatsapp qr: ([^\s"\\]+)/g;

export async function whatsappPlatform(): Promise<Platform & { whatsapp: FakeWhatsApp }> {
  const whatsapp = await startFakeWhatsApp();
  const tried = new Set<string>();
  let log: () => string = () => '';

  /** Scans the newest code, if it can still be scanned. */
  function look(): void {
    if (whatsapp.refs().length === 0) return;
    const qr = [...log().matchAll(QR)].at(-1)?.[1];
    if (qr === undefined || tried.has(qr) || !whatsapp.refs().some((ref) => qr.includes(ref))) return;
    tried.add(qr);
    // A gateway that is killed meanwhile shows another when it comes back.
    whatsapp.scan(qr).catch(() => {});
  }
  const watch = setInterval(look, LOOK_EVERY_MS);

  const peerOf = ({ number, name }: Person) => whatsapp.peer(number, name);
  const chatOf = ({ kind, number }: Place) =>
    kind === 'direct' ? whatsapp.peer(number) : whatsapp.group(number);

  /** The group of a place, with who is about to speak in it; null for a direct chat. */
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

  function say({ image, ...saying }: Saying): string {
    return whatsapp.say({ ...wordsOf(saying), ...(image === undefined ? {} : { image }) }).id;
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
      // Administrators take back what others wrote in WhatsApp's own app; nobody tells us of it.
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
