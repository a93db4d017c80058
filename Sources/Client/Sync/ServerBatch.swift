package import ThicketProtocol

/// Text messages of the server, each read once: in what order they are acted on, and when, is the machine's.
package struct ServerBatch: Sendable {
    package enum Message: Sendable {
        case read(ServerMessage)
        /// Not a message, or not all of one.
        case unreadable([UInt8], WireError)
    }

    package let messages: [Message]

    /// - Parameter texts: in the order they came.
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
