/// Why a release, or a program that is said to be of one, is not what it should be. The text says what was found and
/// what to do.
public struct ReleaseError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What kind of thing is wrong.
    public enum Kind: Sendable, Equatable {
        /// A file is not of the form it should have.
        case malformed
        /// The program's bytes are not those of the release.
        case otherProgram
        /// The head is not signed by the key that counts.
        case otherKey
        /// The release does not stand in the log, as far as its proof shows.
        case notIncluded
        /// The log is not the one that was seen before: it was rewritten, or somebody is shown another.
        case otherLog
        /// The log is shorter than it was before.
        case olderHead
        /// The head is one of the log that was seen before, and the proof that would show it is not there.
        case noConsistencyProof
    }

    public let kind: Kind
    public let description: String

    public init(_ kind: Kind, _ description: String) { (self.kind, self.description) = (kind, description) }
}
