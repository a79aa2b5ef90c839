/** Mounts on which one gateway would see another's writes late, by the table that Linux keeps of them. */
import { describe, expect, it } from 'vitest';
import { mountFindings, seenFindings, sqliteFindings } from '../src/doctor-mounts.js';

const HEAD = ['proc /proc proc rw 0 0', '/dev/vda / ext4 rw,relatime 0 0'];
const mounted = (type: string, options: string, at = '/srv/coterie') =>
  [...HEAD, `files.lan:/export ${at} ${type} ${options} 0 0`, ''].join('\n');
const found = (table: string, folder = '/srv/coterie/groups') => mountFindings(table, { groups_dir: folder });

describe('the mount of shared folders', () => {
  // As the kernel prints them: actimeo=0 becomes four options on NFS.
  const KERNEL = 'rw,vers=4.2,rsize=1048576,hard,proto=tcp,sec=sys,addr=10.0.0.5';
  it.each([
    ['nfs4', `${KERNEL},acregmin=0,acregmax=0,acdirmin=0,acdirmax=0`],
    ['nfs4', `${KERNEL},noac`],
    ['nfs', 'rw,actimeo=0'],
    ['cifs', 'rw,vers=3.1.1,cache=none,actimeo=0'],
    ['smb3', 'rw,cache=none,acregmax=0,acdirmax=0'],
    ['ceph', 'rw,noatime'],
    ['ocfs2', 'rw'],
    ['fuse.fuse-overlayfs', 'rw'],
    ['fuseblk', 'rw'],
  ])('is safe: %s with %s', (type, options) => {
    expect(found(mounted(type, options))).toEqual([]);
  });

  it.each([
    ['nfs4', KERNEL, /Mount it with actimeo=0/],
    ['nfs', `${KERNEL},acregmin=0,acregmax=0`, /actimeo=0/],
    ['nfs', 'rw,actimeo=3', /actimeo=0/],
    ['cifs', 'rw,cache=strict,actimeo=1', /cache=none,actimeo=0/],
    ['cifs', 'rw,cache=none,actimeo=1', /cache=none,actimeo=0/],
    ['cifs', 'rw,cache=loose,actimeo=0', /cache=none,actimeo=0/],
    ['fuse.sshfs', 'rw,nosuid', /use NFS with actimeo=0/],
    ['fuse.rclone', 'rw', /Turn its caches/],
    ['fuse.glusterfs', 'rw', /Turn its caches/],
  ])('shows an edit late: %s with %s', (type, options, remedy) => {
    const [said, ...more] = found(mounted(type, options));
    expect(said).toMatch(remedy);
    expect(said).toContain(`groups_dir (/srv/coterie/groups) is on ${type}`);
    expect(more).toEqual([]);
  });

  it('is the innermost one, and of two on one place the last', () => {
    const nfs = 'a:/x /srv nfs rw 0 0';
    const local = '/dev/vdb /srv/coterie ext4 rw 0 0';
    expect(found([...HEAD, nfs, local].join('\n'))).toEqual([]);
    expect(found([...HEAD, local, nfs].join('\n'), '/srv/coterie')).toEqual([]);
    expect(found([...HEAD, nfs, '/dev/vdb /srv ext4 rw 0 0'].join('\n'))).toEqual([]);
    expect(found([...HEAD, nfs].join('\n'), '/srvother/groups')).toEqual([]);
    expect(found([...HEAD, nfs].join('\n'), '/srv')).toHaveLength(1);
  });

  it('may have blanks and backslashes in its path', () => {
    const table = mounted('nfs', 'rw', '/srv/my\\040files\\134x');
    expect(found(table, '/srv/my files\\x/groups')).toHaveLength(1);
    expect(found(table, '/srv/my')).toEqual([]);
  });

  it('names each folder by its key, and says nothing of a table that it cannot read', () => {
    const folders = { data_dir: '/srv/coterie/data', groups_dir: '/home/groups' };
    expect(mountFindings(mounted('nfs', 'rw'), folders)).toEqual([
      expect.stringMatching(/^data_dir \(\/srv\/coterie\/data\)/),
    ]);
    for (const table of ['', 'nonsense', 'a b\nc d e']) expect(mountFindings(table, folders)).toEqual([]);
  });
});

it('SQLite on a network volume is told of', () => {
  expect(sqliteFindings(mounted('nfs4', 'rw,noac'), '/srv/coterie/data')).toEqual([
    expect.stringContaining("SQLite's locks do not hold on a network"),
  ]);
  expect(sqliteFindings(mounted('ext4', 'rw'), '/srv/coterie/data')).toEqual([]);
});

it('what gateways saw of an edit is told in one line, and what is wrong in one each', () => {
  const seen = (node: string, longestMs: number | null) => ({ node, kind: 'seen' as const, longestMs });
  expect(seenFindings([seen('a', 24), seen('b', 1_000)], '/srv/groups')).toEqual({
    seen: ['an edit in groups_dir is seen by a after 0.02 s, b after 1.00 s'],
    late: [],
  });
  const found = seenFindings(
    [seen('a', 2_510), seen('b', null), { node: 'c', kind: 'no file' }, { node: 'd', kind: 'silent' }],
    '/srv/groups',
  );
  expect(found.seen).toEqual([]);
  expect(found.late).toEqual([
    expect.stringMatching(/^the gateway a saw an edit in groups_dir only after 2\.51 s, .* actimeo=0/),
    expect.stringMatching(/^the gateway b saw an edit in groups_dir not within 5\.00 s, .* actimeo=0/),
    expect.stringMatching(/^the gateway c does not see a file that was made in \/srv\/groups: .*Mount/),
    expect.stringMatching(/^the gateway d did not say within 5 s .* Run doctor again/),
  ]);
});
