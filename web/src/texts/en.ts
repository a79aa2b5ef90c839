/** All texts of the page, in English. Another language has the same keys. `{name}` is filled in. */
export const en = {
  frame: {
    skip: 'Skip to content',
    main: 'Main',
    menu: 'Menu',
    connection: 'Connection',
    connected: 'Connected',
    reconnecting: 'Reconnecting…',
    offline: 'Offline',
    signOut: 'Sign out',
    chat: 'Chat',
    conversations: 'Conversations',
    memory: 'Memory',
    work: 'Work',
    operations: 'Operations',
    setup: 'Setup',
    failed: 'The gateway did not answer. Try again.',
    broken: 'This part of the page failed. Reload it.',
  },
  signIn: {
    title: 'Sign in',
    token: 'Token',
    hint: 'It is board.token in config.yaml.',
    signIn: 'Sign in',
    wrong: 'Wrong token',
    wait: 'Try again in {n} seconds',
  },
  chat: {},
  conversations: {},
  memory: {},
  work: {},
  operations: {},
  setup: {},
  kit: {
    copyCode: 'Copy code',
    copied: 'Copied',
    close: 'Close',
    cancel: 'Cancel',
    preview: 'Preview',
  },
};

export type Texts = typeof en;
