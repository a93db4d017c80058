package import ThicketProtocol

/// Text messages from the server, each parsed once; the machine decides when and in which order to act on them.
package struct ServerBatch: Sendable {
    package enum Message: Sendable {
        case read(ServerMessage)
        /// Not a valid message, or an incomplete one.
        case unreadable([UInt8], WireError)
    }

    package let messages: [Message]

    /// - Parameter texts: in order of arrival.
    package init(_ texts: [[UInt8]]) {
        messages = texts.map { text in
            do throws(WireError) {
                return .read(try ServerMessage(parsing: text))
            } catch {
                return .unreadable(text, error)
            }
        }
    }
}
