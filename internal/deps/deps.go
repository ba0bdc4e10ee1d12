// Package deps tests what the packages of this module may import and touch.
package deps
