/// Why a release, or a program that claims to be of one, fails a check. The text says what was found and what to do.
public struct ReleaseError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kinds of faults.
    public enum Kind: Sendable, Equatable {
        /// A file does not have the required form.
        case malformed
        /// The program's bytes are not those of the release.
        case otherProgram
        /// The head is not signed by the trusted key.
        case otherKey
        /// The proof does not show that the log contains the release.
        case notIncluded
        /// The log differs from the one that was seen before: it was rewritten, or another log is shown to this user.
        case otherLog
        /// The log is shorter than before.
        case olderHead
        /// The proof that would connect the head with the log that was seen before is missing.
        case noConsistencyProof
    }

    /// The kind of the fault.
    public let kind: Kind
    /// The text for a person.
    public let description: String

    /// - Parameter description: what was found and what to do.
    public init(_ kind: Kind, _ description: String) { (self.kind, self.description) = (kind, description) }
}
