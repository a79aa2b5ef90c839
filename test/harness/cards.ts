/** Character cards made for tests, in every form in which people bring them. */
import { deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { chunksOf, type PngChunk, pngOf, textChunk } from '../../src/cards/png.js';
import { withEntries } from '../../src/cards/zip.js';

export interface MadeCard {
  spec: string;
  spec_version: string;
  data: Record<string, unknown> & { name: string };
}

export function madeCard(data: Record<string, unknown> = {}): MadeCard {
  return {
    spec: 'chara_card_v3',
    spec_version: '3.0',
    data: {
      name: 'Marla',
      description: '{{char}} keeps a lighthouse.\nShe talks with {{user}} at night.',
      personality: 'dry, patient',
      scenario: 'A storm comes up.',
      first_mes: 'Mind the third step.',
      mes_example: '<START>\n{{user}}: Hi\n{{char}}: Evening.',
      creator_notes: 'Made for tests.',
      system_prompt: '',
      post_history_instructions: '',
      alternate_greetings: ['You again.'],
      group_only_greetings: [],
      tags: ['sea'],
      creator: 'nobody',
      character_version: '1.0',
      extensions: { talkativeness: '0.5', fav: false, other_program: { kept: [1, 2, 3] } },
      ...data,
    },
  };
}

export function picture(colour = 'teal', size = 24): Promise<Buffer> {
  return sharp({ create: { width: size, height: size, channels: 3, background: colour } })
    .png()
    .toBuffer();
}

type ChunkKind = 'tEXt' | 'zTXt' | 'iTXt';

export interface PngMaking {
  kind?: ChunkKind;
  keyword?: string;
  /** Behind the pixels instead of before them. */
  behind?: boolean;
  /** The JSON itself instead of base64. */
  plain?: boolean;
  /** Both keywords, as SillyTavern writes them. */
  both?: boolean;
}

export function cardChunk(text: string, { kind = 'tEXt', keyword = 'chara' }: PngMaking): PngChunk {
  if (kind === 'tEXt') return textChunk({ keyword, text });
  const head = kind === 'zTXt' ? `${keyword}\0\0` : `${keyword}\0\x01\0\0\0`;
  const data = Buffer.concat([Buffer.from(head, 'latin1'), deflateSync(text)]);
  return { type: kind, data, crc: null };
}

export async function pngCard(card: unknown, making: PngMaking = {}): Promise<Buffer> {
  const json = JSON.stringify(card);
  const text = making.plain ? json : Buffer.from(json).toString('base64');
  const keywords = making.both ? ['chara', 'ccv3'] : [making.keyword ?? 'chara'];
  const texts = keywords.map((keyword) => cardChunk(text, { ...making, keyword }));
  const foreign = textChunk({ keyword: 'prompt', text: '{"workflow":1}' });
  const { chunks } = chunksOf(await picture());
  const pixels = chunks.findIndex(({ type }) => type === 'IDAT');
  const at = making.behind ? chunks.length - 1 : pixels;
  return pngOf([...chunks.slice(0, at), foreign, ...texts, ...chunks.slice(at)]);
}

export async function charxCard(card: MadeCard, making: { behindJpeg?: boolean } = {}): Promise<Buffer> {
  const icon = await picture('olive');
  const assets = [{ type: 'icon', name: 'main', ext: 'png', uri: 'embeded://assets/icon/image/main.png' }];
  const json = JSON.stringify({ ...card, data: { assets, ...card.data } });
  const zip = withEntries(
    null,
    new Map([
      ['card.json', Buffer.from(json)],
      ['assets/icon/image/main.png', icon],
      ['assets/other/audio/sea.ogg', Buffer.from('OggS and more')],
    ]),
  );
  if (!making.behindJpeg) return zip;
  const jpeg = await sharp(icon).jpeg().toBuffer();
  return Buffer.concat([jpeg, zip]);
}

/** As Agnai writes it: the JSON in the EXIF comment. */
export async function exifCard(card: unknown, form: 'jpeg' | 'webp'): Promise<Buffer> {
  const plain = await sharp(await picture())
    [form]()
    .toBuffer();
  const exif = exifWith(Buffer.from(`ASCII\0\0\0${JSON.stringify(card)}`));
  if (form === 'jpeg') {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(exif.length + 8);
    const segment = Buffer.concat([Buffer.from([0xff, 0xe1]), length, Buffer.from('Exif\0\0'), exif]);
    return Buffer.concat([plain.subarray(0, 2), segment, plain.subarray(2)]);
  }
  const head = Buffer.alloc(8);
  head.write('EXIF', 0, 'latin1');
  head.writeUInt32LE(exif.length, 4);
  const padding = Buffer.alloc(exif.length % 2);
  const whole = Buffer.concat([plain, head, exif, padding]);
  whole.writeUInt32LE(whole.length - 8, 4);
  return whole;
}

/** Little-endian TIFF: one directory that points to the one of EXIF, with the comment alone. */
function exifWith(comment: Buffer): Buffer {
  const head = Buffer.alloc(44);
  head.write('II*\0', 0, 'latin1');
  head.writeUInt32LE(8, 4);
  head.writeUInt16LE(1, 8);
  entry(10, 0x8769, 4, 1, 26);
  head.writeUInt16LE(1, 26);
  entry(28, 0x9286, 7, comment.length, 44);
  return Buffer.concat([head, comment]);

  function entry(at: number, tag: number, type: number, count: number, value: number): void {
    head.writeUInt16LE(tag, at);
    head.writeUInt16LE(type, at + 2);
    head.writeUInt32LE(count, at + 4);
    head.writeUInt32LE(value, at + 8);
  }
}
