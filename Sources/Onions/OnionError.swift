import ThicketClient

/// Why something with encrypted notes did not happen. Holds nothing of a note, a name or a password.
public enum OnionError: Error, Sendable, Equatable, CustomStringConvertible {
    /// User name and password do not open an account; nobody is told which of them is wrong.
    case wrongLogin
    /// The session has ended (logout, lock): log in again.
    case ended
    /// There is no such note.
    case notFound
    /// The note does not open with this account's keys, so nothing may be written in its place.
    case unreadable
    /// Opening asks for so many rounds that it is done only when the user says so.
    case needsConsent(rounds: Int)
    /// The note was changed by somebody else since it was read.
    case changedMeanwhile
    /// A user who is not Pro has this many notes, which is the most.
    case full(notesMax: Int)
    /// UTF-16 code units of a text, and how many there may be.
    case tooLong(NoteField, units: Int)
    /// What a format needs is not there: the password of old notes, or the vault secret of new ones.
    case noKey
    /// The server does not take it.
    case refused(String)
    /// Something with the keys of an account that has some.
    case keys(AccountError)
    /// Anything else on the way to the server.
    case client(ClientError)

    public var description: String {
        switch self {
        case .wrongLogin: "the user name or the password is wrong"
        case .ended: "the session has ended; log in again"
        case .notFound: "there is no such note"
        case .unreadable: "the note does not open with what opens this account, so it stays as it is"
        case .needsConsent(let rounds): "the note asks for \(rounds) rounds of key stretching, which takes long"
        case .changedMeanwhile: "the note was changed elsewhere meanwhile; read it again"
        case .full(let notesMax): "there are \(notesMax) notes, the most without Pro"
        case .tooLong(let field, let units):
            "\(field == .title ? "the title" : "the text") has \(units) characters (UTF-16), the most is \(field.unitsMax)"
        case .noKey: "this account has no key for notes of that format"
        case .refused(let why): why
        case .keys(let error): error.description
        case .client(let error): error.detail
        }
    }
}
