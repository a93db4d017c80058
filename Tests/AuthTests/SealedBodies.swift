import ThicketCrypto
import ThicketPlatform

/// Bodies as a client of the scheme without passwords sends them.
enum SealedBodies {
    static func key(_ byte: UInt8, count: Int = 32) -> String { Base64.encodeURL(Array(repeating: byte, count: count)) }

    static let salt = key(9, count: 16)

    static func signup(_ name: String, a: UInt8 = 1, words: UInt8 = 2, more: String = "") -> String {
        #"{"u":"\#(name)","a":"\#(key(a))","kdf":1,"salt":"\#(salt)","access":"\#(key(3, count: 61))","#
            + #""bundle":"\#(key(4, count: 200))","recover":"\#(key(words))"\#(more)}"#
    }

    static func login(_ name: String, a: UInt8 = 1) -> String {
        #"{"u":"\#(name)","a":"\#(key(a))","device":"Ann's phone"}"#
    }
}
