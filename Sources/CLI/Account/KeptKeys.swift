import ThicketClient
import ThicketCommandLine
import ThicketCrypto

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What happens to the next access key (`DeviceKeys.next`).
enum NextKey {
    case stays
    case follows(AccessKey)
    /// It was refused, or it has become the access key.
    case dropped
}

/// Writes an account's keys into a profile while other commands may do the same: keys that another command has found to
/// be newer are not overwritten with older ones, and the next access key is not lost.
struct KeptKeys {
    let home: ProfileHome
    let profile: String

    /// - Returns: whether the profile has these keys now; false when the stored keys are newer.
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

    /// Whether the profile's keys are newer than an account's keys, or differ under the same version number.
    func isNewer(than account: OpenAccount) throws(Failure) -> Bool {
        let kept = try home.readKeys(profile)
        do throws(AccountError) { return try Self.merged(account, .stays, over: kept) == nil } catch {
            throw Failure("the keys cannot be kept", keys: error)
        }
    }

    private func write(_ keys: DeviceKeys) throws(AccountError) {
        do throws(Failure) { try home.writeKeys(keys, profile) } catch { throw .unusable(error.text) }
    }

    /// The keys to write; nil when the stored ones are newer, or differ under the same version number.
    /// - Throws: `keyChanged` when the next key is to replace a key that is not the account's access key any more.
    static func merged(
        _ account: OpenAccount, _ next: NextKey, over kept: DeviceKeys?
    ) throws(AccountError) -> DeviceKeys? {
        guard let kept, same(kept.app, account.app), same(kept.user, account.user) else {
            guard case .follows(let key) = next else { return try DeviceKeys(account) }
            return try DeviceKeys(account, next: key)
        }
        let isSameKey = kept.accessKey == account.accessKey
        // Each change of the access key is a newer version, too.
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
        case .dropped:
            return kept.version > account.version && !isSameKey ? nil : try DeviceKeys(newest)
        }
    }

    /// One version number has two contents only after a restore of the server, and each of the two may have something
    /// that the other lacks. Damaged keys on this machine are not a content: they are overwritten.
    private static func isSame(_ kept: DeviceKeys, _ account: OpenAccount) -> Bool {
        let opened: OpenAccount
        do throws(AccountError) { opened = try kept.open() } catch { return error != .newerFormat }
        return kept.accessKey == account.accessKey && opened.bundle == account.bundle
    }
}

/// A kernel lock on a file in a folder. The kernel releases it when the process ends, however it ends.
struct FolderLock {
    private let descriptor: Int32

    /// - Parameter waits: wait for the process that has the lock; it holds it only for a short time.
    /// - Throws: code `storeInUse` when another process has the lock and `waits` is false.
    init(_ folder: String, _ name: String, waits: Bool) throws(Failure) {
        let path = folder + "/" + name
        let opened = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard opened >= 0 else { throw Failure("cannot make \(path): \(Files.reason())") }
        var result = flock(opened, waits ? LOCK_EX : LOCK_EX | LOCK_NB)
        while result != 0, errno == EINTR { result = flock(opened, waits ? LOCK_EX : LOCK_EX | LOCK_NB) }
        guard result == 0 else {
            let (isLocked, reason) = (errno == EWOULDBLOCK, Files.reason())
            close(opened)
            throw isLocked
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
