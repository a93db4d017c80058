import ThicketProtocol

/// The reason why the server refused a change. The author sees `code`; `detail` goes only to the log.
public struct ChangeRejection: Error, Equatable, CustomStringConvertible {
    /// The code sent to the author.
    public let code: ErrorCode
    /// Details such as versions, sizes and field names; never user content.
    public let detail: String
    /// The part of the change that could have been clear text in a sealed bucket; nil for other reasons.
    public let sealedFault: SealedFault?

    /// Creates a refusal; `detail` must not contain user content.
    public init(_ code: ErrorCode, _ detail: String, sealedFault: SealedFault? = nil) {
        self.code = code
        self.detail = detail
        self.sealedFault = sealedFault
    }

    /// Code and detail in one line, for the log.
    public var description: String { "\(code.rawValue) \(detail)" }
}
