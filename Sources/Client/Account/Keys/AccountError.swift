internal import ThicketCrypto

/// Why something with an account and its secrets was not done. Holds no secret, and is safe to log.
public enum AccountError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The server was not reached or refused; nothing is known to be wrong with the account.
    case server(ClientError)
    /// The server says that name and password do not belong together.
    /// - Parameter isChanged: the password was changed since this device used it last.
    case wrongPassword(isChanged: Bool)
    /// Somebody has the name.
    case nameTaken
    /// The words, or the key behind them, are not those of this account.
    case wrongWords
    /// Words as they were typed are no recovery words.
    case unreadableWords(RecoveryWordsProblem)
    /// The server wants the password handled in a way that this device refuses; nothing was sent. What it asked for.
    case downgrade(String)
    /// The server's account is another than the one this device knows.
    case otherAccount
    /// What the server keeps does not open with this account's keys. Nothing was put in its place.
    case doesNotOpen
    /// What the server keeps is newer than what this device has seen and does not open with its access key: another
    /// device has changed that, or it is not the account's. Nothing was put in its place; what this device has goes on.
    case keyChanged
    /// The server keeps no bundle of the account, though there was one.
    case bundleMissing
    /// The server shows an older bundle than this device has seen, or the one that has given it the keys; or, where
    /// both numbers are the same, another content than this device has seen under it.
    case rolledBack(seen: UInt64, shown: UInt64)
    /// The bundle was written by a newer version of this program; this one leaves it alone.
    case newerFormat
    /// What was opened is no bundle.
    case damaged
    /// The account is locked: its password was reset by mail. The words, the password from before, or a device that has
    /// the keys open it.
    case locked
    /// Other devices wrote the bundle each time this one tried to.
    case busy
    /// The answer did not come: it is not known whether the server did it.
    case unknown(ClientError)
    /// The passcode, the passphrase, or the code itself is wrong.
    case wrongPasscode
    /// The mailed code is wrong, was used, or its time is over.
    case wrongCode
    /// A code or a piece as it was typed cannot be read; the line with the slip, counted from 1, where that is known.
    case unreadableCode(line: Int?)
    /// Pieces that do not give a key.
    case pieces(PieceProblem)
    /// There is not so much memory as stretching a password takes.
    case memory
    /// A password, a name or a parameter that cannot be used.
    case unusable(String)
    /// A pairing whose time is over, or that was used.
    case pairingOver
    /// What came for this pairing does not open: somebody else answered it.
    case pairingForged
    /// It was not done, for this reason, and a login that was made for another device could not be ended: it is in the
    /// account's list of tokens.
    indirect case loginLeft(AccountError)

    public var description: String {
        switch self {
        case .server(let error): error.detail
        case .wrongPassword(isChanged: false): "the name or the password is wrong"
        case .wrongPassword(isChanged: true):
            "the password is wrong; it was changed since this device used it last, or the account is gone"
        case .nameTaken: "somebody has that name already"
        case .wrongWords: "these are not the words of this account"
        case .unreadableWords(let problem): problem.description
        case .downgrade(let what): "the server asks for \(what), which would weaken the password; nothing was sent"
        case .otherAccount: "the server shows another account than the one that this device knows"
        case .doesNotOpen:
            "what the server keeps does not open with the keys of this account; it was left as it is"
        case .keyChanged:
            "the account's keys at the server are newer than here and do not open with the access key of this device; they "
                + "were left as they are, and what is here goes on"
        case .bundleMissing:
            "the server has lost the account's sealed keys; this device puts nothing else in their place"
        case .rolledBack(let seen, let shown) where seen == shown:
            "the server shows another content for version \(shown) of the account's keys than was seen before"
        case .rolledBack(let seen, let shown):
            "the server shows version \(shown) of the account's keys, which is older than version \(seen), seen before"
        case .newerFormat: "the account's keys were written by a newer version of this program"
        case .damaged: "the account's keys opened and cannot be read"
        case .locked:
            "the account is locked, since its password was reset by mail: the recovery words, the password from before or a "
                + "device with the keys open it"
        case .busy: "other devices wrote the account's keys each time"
        case .unknown(let error):
            "the server's answer did not come, so it is not known whether it was done (\(error.detail))"
        case .wrongCode: "the code is wrong, was used, or is older than 15 minutes"
        case .wrongPasscode: "the passcode is wrong, or the code is another one's"
        case .unreadableCode(let line?): "line \(line) of the code has a slip"
        case .unreadableCode(nil): "this is no such code, or a part of it is missing"
        case .pieces(let problem): problem.description
        case .memory: "there is not enough memory: stretching a password takes 128 MiB"
        case .unusable(let what): what
        case .pairingOver: "this pairing is over: a code is good for two minutes, and for one answer"
        case .loginLeft(let reason): "\(reason). A login that was made for the other device could not be ended"
        case .pairingForged: "what came was sealed by somebody else, or for another device; nothing was taken"
        }
    }
}

/// Why words were not taken. Never which word of those that are in the list.
public enum RecoveryWordsProblem: Sendable, Equatable, CustomStringConvertible {
    /// Not 24.
    case count
    /// The word at this place, counted from 1, is not in the list.
    case unknownWord(Int)
    /// They do not belong together.
    case checksum

    public var description: String {
        switch self {
        case .count: "these are not 24 words"
        case .unknownWord(let place): "word \(place) is not one of the list's 2,048"
        case .checksum: "these words do not belong together: one of them, or their order, is wrong"
        }
    }
}

/// Why pieces of a key do not give it.
public enum PieceProblem: Sendable, Equatable, CustomStringConvertible {
    case tooFew(has: Int, needs: Int)
    /// The pieces at these places, counted from 1, are of another set.
    case mixed([Int])
    /// The piece at this place, counted from 1, was made up or changed.
    case foreign(Int)

    public var description: String {
        switch self {
        case .tooFew(let has, let needs): "\(needs) different pieces are needed, and \(has) are there"
        case .mixed(let places):
            "piece \(places.map(String.init).joined(separator: ", ")) as typed belongs to another set than the others"
        case .foreign(let place): "piece \(place) as typed is not one of the set that it names"
        }
    }
}

extension AccountError {
    /// An error of the primitives where a password is stretched.
    init(stretching error: CryptoError) {
        switch error {
        case .outOfBounds(.password): self = .unusable("the password is not UTF-8, or longer than 64 KiB")
        case .outOfBounds(.memory): self = .memory
        default: self = .unusable("\(error)")
        }
    }
}
