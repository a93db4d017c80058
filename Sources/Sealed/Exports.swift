// Code that uses sealed objects needs their shape too.
@_exported import ThicketSealedShape
