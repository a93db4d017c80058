import ThicketClient
import ThicketCommandLine
import ThicketCrypto

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What becomes of an access key that is to follow (`DeviceKeys.next`).
enum NextKey {
    case stays
    case follows(AccessKey)
    /// It was refused, or it has followed.
    case goes
}

/// Writes an account's keys into a profile beside other commands that do the same: what one of them has found to be
/// newer is not overwritten with what another had read before, and an access key that is to follow is not lost on the
/// way.
struct KeptKeys {
    let home: ProfileHome
    let profile: String

    /// - Returns: whether the profile has these keys now; false when those that are there are newer.
    @discardableResult
    func keep(_ account: OpenAccount, next: NextKey = .stays) throws(Failure) -> Bool {
        try home.makeFolder(profile)
        let lock = try FolderLock(home.folder(profile), "keys.lock", waits: true)
        defer { lock.end() }
        let kept = try home.readKeys(profile)
        do throws(AccountError) {
            guard let keys = try Self.merged(account, next, over: kept) else { return false }
            try write(keys)
            return true
        } catch {
            throw Failure("the keys cannot be kept", keys: error)
        }
    }

    /// Whether what the profile has is newer than an account's keys, or another content under the same number.
    func isNewer(than account: OpenAccount) throws(Failure) -> Bool {
        let kept = try home.readKeys(profile)
        do throws(AccountError) { return try Self.merged(account, .stays, over: kept) == nil } catch {
            throw Failure("the keys cannot be kept", keys: error)
        }
    }

    private func write(_ keys: DeviceKeys) throws(AccountError) {
        do throws(Failure) { try home.writeKeys(keys, profile) } catch { throw .unusable(error.text) }
    }

    /// What is to be written; nil when what is there is newer, or is something else of the same number.
    /// - Throws: `keyChanged` when a key is to follow one that is not the account's any more.
    static func merged(
        _ account: OpenAccount, _ next: NextKey, over kept: DeviceKeys?
    ) throws(AccountError) -> DeviceKeys? {
        guard let kept, same(kept.app, account.app), same(kept.user, account.user) else {
            guard case .follows(let key) = next else { return try DeviceKeys(account) }
            return try DeviceKeys(account, next: key)
        }
        let isSameKey = kept.accessKey == account.accessKey
        // Each change of the key, too, is a newer version.
        let newest = kept.version > account.version ? try kept.open() : account
        switch next {
        case .stays:
            guard kept.version < account.version || kept.version == account.version && isSame(kept, account) else {
                return nil
            }
            return try DeviceKeys(account, next: isSameKey ? kept.next : nil)
        case .follows(let key):
            guard isSameKey else { throw .keyChanged }
            return try DeviceKeys(newest, next: key)
        case .goes:
            return kept.version > account.version && !isSameKey ? nil : try DeviceKeys(newest)
        }
    }

    /// One number has two contents only after a restore of the server, and either may have what the other lacks. What
    /// is damaged here is no content: it is written anew.
    private static func isSame(_ kept: DeviceKeys, _ account: OpenAccount) -> Bool {
        let opened: OpenAccount
        do throws(AccountError) { opened = try kept.open() } catch { return error != .newerFormat }
        return kept.accessKey == account.accessKey && opened.bundle == account.bundle
    }
}

/// A lock of the kernel's on a file in a folder: it goes with the process, however that ends.
struct FolderLock {
    private let descriptor: Int32

    /// - Parameter waits: for whoever has it, who is quick.
    /// - Throws: code `storeInUse` when another process has it and nobody waits.
    init(_ folder: String, _ name: String, waits: Bool) throws(Failure) {
        let path = folder + "/" + name
        let opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard opened >= 0 else { throw Failure("cannot make \(path): \(Files.reason())") }
        var result = flock(opened, waits ? LOCK_EX : LOCK_EX | LOCK_NB)
        while result != 0, errno == EINTR { result = flock(opened, waits ? LOCK_EX : LOCK_EX | LOCK_NB) }
        guard result == 0 else {
            let (isTaken, reason) = (errno == EWOULDBLOCK, Files.reason())
            close(opened)
            throw isTaken
                ? Failure("another thicket changes the access key: let it end first", .storeInUse)
                : Failure("cannot lock \(path): \(reason)")
        }
        descriptor = opened
    }

    func end() {
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}
