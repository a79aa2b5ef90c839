/** Alle Texte der Seite auf Deutsch. */
import type { Texts } from './en.ts';

export const de: Texts = {
  frame: {
    skip: 'Zum Inhalt springen',
    main: 'Hauptmenü',
    menu: 'Menü',
    connection: 'Verbindung',
    connected: 'Verbunden',
    reconnecting: 'Verbindet neu …',
    offline: 'Offline',
    signOut: 'Abmelden',
    chat: 'Chat',
    conversations: 'Gespräche',
    memory: 'Gedächtnis',
    work: 'Arbeit',
    operations: 'Betrieb',
    setup: 'Einrichtung',
    failed: 'Das Gateway hat nicht geantwortet. Versuche es noch einmal.',
    broken: 'Dieser Teil der Seite ist ausgefallen. Lade sie neu.',
  },
  signIn: {
    title: 'Anmelden',
    token: 'Token',
    hint: 'Er steht als board.token in config.yaml.',
    signIn: 'Anmelden',
    wrong: 'Falscher Token',
    wait: 'Versuche es in {n} Sekunden noch einmal',
  },
  chat: {},
  conversations: {},
  memory: {},
  work: {},
  operations: {},
  setup: {},
  kit: {
    copyCode: 'Code kopieren',
    copied: 'Kopiert',
    close: 'Schließen',
    cancel: 'Abbrechen',
    preview: 'Vorschau',
  },
};
