/// Reasons why the network could not be set up.
public enum NetError: Error, Equatable, CustomStringConvertible {
    /// An address that cannot be bound, and the reason.
    case listen(address: String, reason: String)
    /// The kernel refused a descriptor that the loop needs.
    case setup(call: String, reason: String)
    /// The certificate or key cannot be used.
    case tls(TLSError)

    /// The call or address, and the reason.
    public var description: String {
        switch self {
        case .listen(let address, let reason): "cannot listen on \(address): \(reason)"
        case .tls(let error): error.description
        case .setup(let call, let reason): "\(call) failed: \(reason)"
        }
    }
}
