import ThicketProtocol

/// Why the server did not take a change. The author sees `code`; `detail` goes to the log only.
public struct ChangeRejection: Error, Equatable, CustomStringConvertible {
    /// The number to answer with.
    public let code: ErrorCode
    /// What was wrong: versions, sizes, names of fields. Never user content.
    public let detail: String
    /// What of it could have been clear text, where that is the reason.
    public let sealedFault: SealedFault?

    public init(_ code: ErrorCode, _ detail: String, sealedFault: SealedFault? = nil) {
        self.code = code
        self.detail = detail
        self.sealedFault = sealedFault
    }

    public var description: String { "\(code.rawValue) \(detail)" }
}
