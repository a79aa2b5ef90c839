/**
 * The profile photos that bots give themselves (Bot API, "setMyProfilePhoto", "InputProfilePhotoStatic"): a new JPEG in
 * the same form, named by `attach://`. Without its type it is refused as in go-telegram/bot#261; a picture of less than
 * 160 pixels a side as photos of chats are.
 */
import type { Payload } from './telegram-body.js';
import type { UploadedFile } from './telegram-form.js';

const MOST_BYTES = 10_000_000;
const LEAST_SIDE = 160;

type Refusal = { status: number; description: string };

export interface BotPhotos {
  /** Of each bot, in order. */
  all: { bot: number; bytes: Buffer }[];
  /** null: it is taken. */
  set(bot: number, payload: Payload): Refusal | null;
}

export function createPhotos(): BotPhotos {
  const all: BotPhotos['all'] = [];
  return {
    all,
    set(bot, payload) {
      const found = photoIn(payload);
      if (typeof found === 'string') return { status: 400, description: `Bad Request: ${found}` };
      all.push({ bot, bytes: found });
      return null;
    },
  };
}

function photoIn({ photo, ...rest }: Payload): Buffer | string {
  if (typeof photo !== 'object' || photo === null) return "photo isn't specified";
  const { type, photo: attached }: Payload = { ...photo };
  if (type === undefined) return 'can\'t find field "type"';
  if (type !== 'static') return 'unsupported profile photo type';
  const [, name = ''] = /^attach:\/\/(.+)$/.exec(String(attached)) ?? [];
  const file = rest[name] as UploadedFile | undefined;
  if (file === undefined) return "profile photos can't be reused and can only be uploaded as a new file";
  if (file.bytes.length === 0) return 'file must be non-empty';
  if (file.bytes.length > MOST_BYTES) return 'file is too big';
  const sides = sidesOf(file.bytes);
  if (sides === null) return 'IMAGE_PROCESS_FAILED';
  return sides.some((side) => side < LEAST_SIDE) ? 'PHOTO_CROP_SIZE_SMALL' : file.bytes;
}

/** Of a JPEG, from its frame header; null: it is none. */
function sidesOf(bytes: Buffer): [number, number] | null {
  if (!bytes.toString('hex', 0, 2).startsWith('ffd8')) return null;
  for (let at = 2; at + 9 < bytes.length && bytes[at] === 0xff; at += 2 + bytes.readUInt16BE(at + 2)) {
    const marker = bytes[at + 1] ?? 0;
    if (marker >= 0xc0 && marker <= 0xc3) return [bytes.readUInt16BE(at + 5), bytes.readUInt16BE(at + 7)];
  }
  return null;
}
