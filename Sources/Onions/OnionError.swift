import ThicketClient

/// Why an operation on encrypted notes failed. It contains nothing of a note, a name or a password.
public enum OnionError: Error, Sendable, Equatable, CustomStringConvertible {
    /// User name and password do not open an account; which of them is wrong is not revealed.
    case wrongLogin
    /// The session has ended (logout, lock): log in again.
    case ended
    /// The note does not exist.
    case notFound
    /// The note does not open with this account's keys, so it must not be overwritten.
    case unreadable
    /// Opening needs so many rounds that the user must agree first.
    case needsConsent(rounds: Int)
    /// Another device changed the note after it was read.
    case changedMeanwhile
    /// A user that is not Pro has this many notes, which is the maximum.
    case full(notesMax: Int)
    /// UTF-16 code units of a text that has more than its field permits.
    case tooLong(NoteField, units: Int)
    /// The key that the format needs is missing: the password for old notes, or the vault secret for new ones.
    case noKey
    /// The server refuses it.
    case refused(String)
    /// An error with the keys of an account that has some.
    case keys(AccountError)
    /// Any other error of the connection to the server.
    case client(ClientError)

    /// The reason as part of a sentence, for a person.
    public var description: String {
        switch self {
        case .wrongLogin: "the user name or the password is wrong"
        case .ended: "the session has ended; log in again"
        case .notFound: "the note does not exist"
        case .unreadable: "the note does not open with what opens this account, so it stays as it is"
        case .needsConsent(let rounds): "the note asks for \(rounds) rounds of key stretching, which takes long"
        case .changedMeanwhile: "the note was changed elsewhere meanwhile; read it again"
        case .full(let notesMax): "there are \(notesMax) notes, the most without Pro"
        case .tooLong(let field, let units):
            "\(field == .title ? "the title" : "the text") has \(units) characters (UTF-16), the maximum is "
                + "\(field.unitsMax)"
        case .noKey: "this account has no key for notes of that format"
        case .refused(let why): why
        case .keys(let error): error.description
        case .client(let error): error.detail
        }
    }
}
