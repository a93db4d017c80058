internal import ThicketCrypto

/// An error of an operation on an account or its secrets. Holds no secret, and is safe to log.
public enum AccountError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The server was not reached or refused; nothing is known to be wrong with the account.
    case server(ClientError)
    /// The server reports that name and password do not match.
    ///
    /// - Parameter isChanged: the password has been changed since this device used it last.
    case wrongPassword(isChanged: Bool)
    /// The name is taken.
    case nameTaken
    /// The words, or the key that they encode, do not belong to this account.
    case wrongWords
    /// The typed words are not valid recovery words.
    case unreadableWords(RecoveryWordsProblem)
    /// The server asked for a weaker handling of the password, which this device refuses; nothing was sent. The text
    /// says what it asked for.
    case downgrade(String)
    /// The server's account differs from the one that this device knows.
    case otherAccount
    /// The server's data cannot be opened with this account's keys. It was not replaced.
    case doesNotOpen
    /// The server's data is newer than what this device has seen and cannot be opened with the device's access key:
    /// another device changed the key, or the data does not belong to the account. It was not replaced; this device's
    /// data remains usable.
    case keyChanged
    /// The server does not have a bundle of the account, although one existed.
    case bundleMissing
    /// The server shows an older bundle than this device, or the device that gave it the keys, has seen; or, with equal
    /// numbers, another content than this device has seen under that number.
    case rolledBack(seen: UInt64, shown: UInt64)
    /// A newer version of this program wrote the bundle; this version does not change it.
    case newerFormat
    /// The opened data is not a valid bundle.
    case damaged
    /// The account is locked: its password was reset by mail. The recovery words, the previous password, or a device
    /// that has the keys opens it.
    case locked
    /// Other devices wrote the bundle each time this device tried to.
    case busy
    /// The answer did not arrive: the server may have done it.
    case unknown(ClientError)
    /// The passcode, the passphrase, or the code itself is wrong.
    case wrongPasscode
    /// The mailed code is wrong, used, or expired.
    case wrongCode
    /// A typed code or piece cannot be read; `line` is the line with the error, counted from 1, when it is known.
    case unreadableCode(line: Int?)
    /// The pieces do not give a key.
    case pieces(PieceProblem)
    /// Too little memory is available to derive a key from a password.
    case memory
    /// A password, a name or a parameter that cannot be used.
    case unusable(String)
    /// The pairing has expired or was used.
    case pairingOver
    /// The answer to this pairing cannot be opened: it does not come from the other device.
    case pairingForged
    /// The operation failed for the given reason, and the login made for another device could not be revoked: it
    /// remains in the account's list of tokens.
    indirect case loginLeft(AccountError)

    /// A text for the user.
    public var description: String {
        switch self {
        case .server(let error): error.detail
        case .wrongPassword(isChanged: false): "the name or the password is wrong"
        case .wrongPassword(isChanged: true):
            "the password is wrong; it was changed since this device used it last, or the account is gone"
        case .nameTaken: "the name is already taken"
        case .wrongWords: "these are not the words of this account"
        case .unreadableWords(let problem): problem.description
        case .downgrade(let what): "the server asks for \(what), which would weaken the password; nothing was sent"
        case .otherAccount: "the server shows another account than the one that this device knows"
        case .doesNotOpen:
            "the server's data cannot be opened with the keys of this account; it was not changed"
        case .keyChanged:
            "the account's keys on the server are newer than on this device and cannot be opened with its access key; "
                + "they were not changed, and the keys on this device remain usable"
        case .bundleMissing:
            "the server has lost the account's sealed keys; this device does not replace them"
        case .rolledBack(let seen, let shown) where seen == shown:
            "the server shows another content for version \(shown) of the account's keys than was seen before"
        case .rolledBack(let seen, let shown):
            "the server shows version \(shown) of the account's keys, which is older than version \(seen), seen before"
        case .newerFormat: "the account's keys were written by a newer version of this program"
        case .damaged: "the account's keys were opened but cannot be read"
        case .locked:
            "the account is locked because its password was reset by mail: the recovery words, the previous password "
                + "or a device with the keys open it"
        case .busy: "other devices wrote the account's keys each time"
        case .unknown(let error):
            "the server's answer did not arrive, so it is not known whether the request succeeded (\(error.detail))"
        case .wrongCode: "the code is wrong, has been used, or is older than 15 minutes"
        case .wrongPasscode: "the passcode is wrong, or it belongs to another code"
        case .unreadableCode(let line?): "line \(line) of the code has a typing error"
        case .unreadableCode(nil): "this is not a valid code, or a part of it is missing"
        case .pieces(let problem): problem.description
        case .memory: "there is not enough memory: stretching a password takes 128 MiB"
        case .unusable(let what): what
        case .pairingOver: "this pairing has ended: a code is valid for two minutes, and for one answer"
        case .loginLeft(let reason): "\(reason). The login made for the other device could not be revoked"
        case .pairingForged: "the answer was sealed by another party or for another device; nothing was accepted"
        }
    }
}

/// Why recovery words were rejected. Never reveals which of the listed words were given.
public enum RecoveryWordsProblem: Sendable, Equatable, CustomStringConvertible {
    /// Not 24 words.
    case count
    /// The word at this place, counted from 1, is not in the list.
    case unknownWord(Int)
    /// The checksum is wrong.
    case checksum

    /// A text for the user.
    public var description: String {
        switch self {
        case .count: "these are not 24 words"
        case .unknownWord(let place): "word \(place) is not one of the list's 2,048"
        case .checksum: "these words do not belong together: one of them, or their order, is wrong"
        }
    }
}

/// Why pieces do not give a key.
public enum PieceProblem: Sendable, Equatable, CustomStringConvertible {
    /// Fewer different pieces than needed.
    case tooFew(has: Int, needs: Int)
    /// The pieces at these places, counted from 1, belong to another set.
    case mixed([Int])
    /// The piece at this place, counted from 1, was made up or changed.
    case foreign(Int)

    /// A text for the user.
    public var description: String {
        switch self {
        case .tooFew(let has, let needs): "\(needs) different pieces are needed, but only \(has) were given"
        case .mixed(let places):
            "piece \(places.map(String.init).joined(separator: ", ")) as typed belongs to another set than the others"
        case .foreign(let place): "piece \(place) as typed is not one of the set that it names"
        }
    }
}

extension AccountError {
    /// An error of the key derivation from a password.
    init(stretching error: CryptoError) {
        switch error {
        case .outOfBounds(.password): self = .unusable("the password is not UTF-8, or longer than 64 KiB")
        case .outOfBounds(.memory): self = .memory
        default: self = .unusable("\(error)")
        }
    }
}
