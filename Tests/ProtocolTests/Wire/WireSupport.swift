import ThicketProtocol

/// Reads a client's message given as text.
func client(_ text: String) throws -> ClientMessage { try ClientMessage(parsing: Array(text.utf8)) }

/// Reads a server's message given as text.
func server(_ text: String) throws -> ServerMessage { try ServerMessage(parsing: Array(text.utf8)) }

extension ClientMessage {
    var text: String { String(decoding: encoded(), as: UTF8.self) }
}

extension ServerMessage {
    var text: String { String(decoding: encoded(), as: UTF8.self) }
}
