import ThicketProtocol

/// The reason why the server refused a change. The author sees `code` and `tree`; `detail` goes only to
/// the log.
public struct ChangeRejection: Error, Equatable, CustomStringConvertible {
    /// The code sent to the author.
    public let code: ErrorCode
    /// Details such as versions, sizes and field names; never user content.
    public let detail: String
    /// The part of the change that could have been clear text in a sealed bucket; nil for other reasons.
    public let sealedFault: SealedFault?
    /// What the author of a change of a tree is sent beside the code; nil for reasons that every bucket has.
    public let tree: TreeRejection?

    /// Creates a refusal; `detail` must not contain user content.
    public init(
        _ code: ErrorCode, _ detail: String, sealedFault: SealedFault? = nil, tree: TreeRejection? = nil
    ) {
        self.code = code
        self.detail = detail
        self.sealedFault = sealedFault
        self.tree = tree
    }

    /// Code and detail in one line, for the log.
    public var description: String { "\(code.rawValue) \(detail)" }
}
