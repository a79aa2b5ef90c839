/** The port of the setup: the same steps on the page and in the terminal. No answer holds a secret. */

export interface Setup {
  state(): Promise<SetupState>;
  /** Model servers on this machine that answer. */
  servers(): Promise<FoundServer[]>;
  /** One request. Without a key of its own, the stored one is used, but only for the address that it belongs to. */
  tryModel(wish: ModelWish): Promise<Tried>;
  saveModel(wish: ModelWish): Promise<Saved>;
  /** Asks the platform who the bot is. */
  checkToken(platform: TokenPlatform, token: string): Promise<Tried>;
  saveToken(platform: TokenPlatform, token: string): Promise<Saved>;
  /** Switches WhatsApp on; from then on `state` tells how to link it. */
  connectWhatsApp(): Promise<Saved>;
  /** The code that a phone scans now, as SVG; null: none is shown. */
  linkPicture(): Promise<string | null>;
  /** A code to type on this phone. */
  linkCode(phone: string): Promise<Tried>;
  /** The file was changed elsewhere: the gateway takes it in. */
  takeIn(): void;
  /** It does not come by itself any more. */
  leave(how: 'finished' | 'skipped'): Promise<void>;
}

export type TokenPlatform = 'telegram' | 'discord';

export interface ModelWish {
  address: string;
  /** null: the stored one, if the address is the same. */
  key: string | null;
  model: string;
}

export interface SetupState {
  /** Nothing is configured, and nobody has finished or skipped it: it comes by itself. */
  isDue: boolean;
  /** Of the configuration. */
  model: { address: string; name: string; hasKey: boolean } | null;
  channels: Record<TokenPlatform | 'whatsapp', ChannelSetup>;
  /** A code for WhatsApp, by number: another one has another picture. */
  link: number | null;
}

export interface ChannelSetup {
  /** `begun`: only the token is missing. */
  state: 'none' | 'begun' | 'on';
  isConnected: boolean;
  /** Of several gateways, the other one that has it. */
  heldBy: string | null;
  /** In plain words. */
  error: string | null;
}

export interface FoundServer {
  /** Ollama, LM Studio, llama.cpp: by its usual port. */
  name: string;
  address: string;
  models: string[];
}

/** `says`: who answered, a code, or why not. */
export type Tried =
  | { works: true; says: string; invite?: string; warnings: string[] }
  | { works: false; says: string };

export type Saved =
  | { saved: true; file: string /** Nothing of it was new. */; isSame: boolean; warnings: string[] }
  | { saved: false; says: string };
