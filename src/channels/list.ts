/** The platforms that there are, in the order in which they start. A new one is its folder and a line here. */
import { discord } from './discord/descriptor.js';
import { telegram } from './telegram/descriptor.js';
import { whatsapp } from './whatsapp/descriptor.js';

export const CHANNELS = [telegram, discord, whatsapp] as const;
